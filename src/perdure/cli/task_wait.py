"""Waiting for tasks with a live line for each few of them."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from perdure.cli.output import console, plain, write_json, write_note, write_table
from perdure.cli.problems import FAILED, SUCCEEDED
from perdure.cli.session import Session, on_store
from perdure.cli.unserved import Waiting, note_unserved
from perdure.domain.states import TaskState
from perdure.errors import NotFound, PerdureError, Unavailable, WaitTimedOut

if TYPE_CHECKING:
    from perdure.store.views import Ended

SHOWN_EVERY = 0.25
"""Seconds between two looks while somebody watches."""
LINE_EVERY = 1.0
"""Seconds between two lines of progress where nobody does: in a log."""
ASKED_MAX = 20
"""Of so many cancelled tasks it is told with which words they were."""


def wait_for(store: str | None, task_ids: Sequence[str], *, timeout: float | None, any_of: bool, as_json: bool) -> int:
    """Wait for the end of all (or one) of these tasks, write how they ended, and return the exit code.

    Raises `WaitTimedOut`, and `NotFound` for a task that the store does not have.
    """
    try:
        ended, asked = on_store(store, lambda session: _wait(session, task_ids, timeout, any_of, note=not as_json))
    except WaitTimedOut as error:
        advice = "`perdure task why ID` tells what keeps a task"
        raise WaitTimedOut(f"{error.message}; {advice}", **error.fields) from None
    if as_json:
        write_json({"tasks": [plain(each) for each in ended]})
    else:
        _write(ended, asked)
    from perdure.domain.states import GOOD_ENDS

    return SUCCEEDED if all(each.state in GOOD_ENDS for each in ended) else FAILED


async def _wait(
    session: Session, task_ids: Sequence[str], timeout: float | None, any_of: bool, *, note: bool
) -> "tuple[list[Ended], dict[str, str]]":
    """How they ended, and for people the words with which some were cancelled."""
    waiting = set()
    for task_id in task_ids:
        view = await session.views.task(session.organization, task_id)
        if view is None:
            raise NotFound(f"there is no task {task_id} in this store", what="task", id=task_id)
        if note and view.finished_us is None:
            waiting.add(Waiting(view.kind, view.queue))
    await note_unserved(session, waiting)

    async def done() -> int:
        return len(await session.views.ended(session.organization, task_ids))

    async with watched(len(task_ids), "tasks") as advance, watching(done, advance):
        ended = await session.operations.wait_ended(session.organization, task_ids, timeout, any_of)
    return ended, await _asked(session, ended) if note else {}


async def _asked(session: Session, ended: "Sequence[Ended]") -> dict[str, str]:
    """What was said by who cancelled, of the first few; only told beside the ends, which nothing may hold up."""
    said: dict[str, str] = {}
    cancelled = [each.id for each in ended if each.state == TaskState.CANCELLED]
    with contextlib.suppress(PerdureError):
        for task_id in cancelled[:ASKED_MAX]:
            view = await session.views.task(session.organization, task_id)
            if view is not None and view.cancel is not None and view.cancel.text:
                said[task_id] = view.cancel.text
    return said


@contextlib.asynccontextmanager
async def watching(done: Callable[[], Awaitable[int]], advance: Callable[[int], None]) -> AsyncIterator[None]:
    """Move the progress to what is `done` while the body waits."""
    import asyncio

    async def look() -> None:
        while True:
            # Only the bar waits for this: whoever waits for the end is told what is wrong by the wait itself.
            with contextlib.suppress(Unavailable):
                advance(await done())
            await asyncio.sleep(SHOWN_EVERY)

    looking = asyncio.get_running_loop().create_task(look(), name="perdure-progress")
    try:
        yield
    finally:
        looking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await looking


@contextlib.asynccontextmanager
async def watched(total: int, what: str) -> AsyncIterator[Callable[[int], None]]:
    """A progress bar on standard error where somebody watches, else lines; what it gives sets how many are done."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    screen = console(to_stderr=True)
    if not screen.is_terminal:
        yield _lines(total, what)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=screen, transient=True) as progress:
        bar = progress.add_task(what, total=total)
        yield lambda done: progress.update(bar, completed=done)


def _lines(total: int, what: str) -> Callable[[int], None]:
    """Writes a line now and then, when more are done than at the last one."""
    import asyncio

    loop = asyncio.get_running_loop()
    shown, shown_at = 0, loop.time()

    def advance(done: int) -> None:
        nonlocal shown, shown_at
        if done > shown and loop.time() - shown_at >= LINE_EVERY:
            shown, shown_at = done, loop.time()
            write_note(f"{what}: {done} of {total}")

    return advance


def _write(ended: "Sequence[Ended]", asked: "Mapping[str, str]") -> None:
    write_table(
        ("ID", "STATE", "REASON", "RESULT"),
        [(each.id, each.state, each.reason, asked.get(each.id) or _outcome(each)) for each in ended],
        "nothing has ended",
    )


def _outcome(ended: "Ended") -> str:
    import msgspec

    if ended.error is not None:
        return f"{ended.error.type}: {ended.error.message}"
    return msgspec.json.encode(plain(ended.result)).decode() if ended.result is not None else "-"
