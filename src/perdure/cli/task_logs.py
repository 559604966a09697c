"""What handlers of a task logged, as people read it: all of it, or as it comes."""

import contextlib
from typing import TYPE_CHECKING

from perdure.cli.output import counted, shown_instant, write_json, write_line, write_note
from perdure.cli.session import Session, on_store
from perdure.errors import NotFound, WaitTimedOut

if TYPE_CHECKING:
    from perdure.store.views import LogView

LOOK_EVERY = 0.5
"""Seconds between two looks at a task that goes on."""


def write_logs(store: str | None, task_id: str, *, follow: bool, as_json: bool) -> None:
    """Write the log of a task; with `follow`, until the task has ended. Raises `NotFound`."""

    async def read(session: Session) -> "list[LogView]":
        log = _Log(session, task_id)
        kept: list[LogView] = []
        while True:
            # Looked at first: what was logged before the end is there then.
            over = not follow or await log.ended()
            lines = await log.new_lines()
            if as_json:
                kept += lines
            else:
                log.write(lines)
            if over:
                if not log.begun:
                    write_note("nothing is logged")
                return kept
            await log.wait()

    lines = on_store(store, read)
    if as_json:
        write_json({"logs": lines})


class _Log:
    """One task's log, read on from where it was left."""

    def __init__(self, session: Session, task_id: str) -> None:
        self._session = session
        self._task_id = task_id
        self._cursor: str | None = None
        self._attempt: str | None = None
        self.begun = False
        """A line was read."""

    async def new_lines(self) -> "list[LogView]":
        """What has come since the last look."""
        from perdure.domain.limits import LIST_MAX_ROWS

        session, found = self._session, []
        while True:
            page = await session.views.logs(session.organization, self._task_id, LIST_MAX_ROWS, self._cursor)
            found += page.lines
            self._cursor = page.cursor
            if not page.more:
                self.begun = self.begun or bool(found)
                return found

    async def ended(self) -> bool:
        """Whether the task has ended. Raises `NotFound`."""
        view = await self._session.views.task(self._session.organization, self._task_id)
        if view is None:
            raise NotFound(f"there is no task {self._task_id} in this store", what="task", id=self._task_id)
        return view.finished_us is not None

    async def wait(self) -> None:
        """Wait for the end, or until it is time to look again."""
        session = self._session
        with contextlib.suppress(WaitTimedOut):
            await session.operations.wait_ended(session.organization, [self._task_id], LOOK_EVERY)

    def write(self, lines: "list[LogView]") -> None:
        """Lines for people, with a word where another attempt begins and where some are missing."""
        for line in lines:
            if line.attempt_id != self._attempt:
                self._attempt = line.attempt_id
                write_line(f"attempt {line.attempt_id}")
            if line.dropped:
                write_line(f"... {counted(line.dropped, 'line')} not kept ...")
            write_line(f"{shown_instant(line.at_us)} {line.level:<8} {line.message}")
