"""Cancel tasks and jobs."""

import contextlib
from collections.abc import Sequence

from perdure.domain import ids, limits
from perdure.domain.states import Reason
from perdure.engine.names import check_prose
from perdure.engine.requests import Principal
from perdure.errors import Invalid, Unavailable
from perdure.store.ledger import Cancellation, Cancelled, Ledger
from perdure.store.wakeups import Topic, Wakeups


class Cancel:
    """Requests that tasks shall not (go on to) run."""

    def __init__(self, ledger: Ledger, wakeups: Wakeups, grace_us: int) -> None:
        self._ledger = ledger
        self._wakeups = wakeups
        self._grace_us = grace_us

    async def __call__(
        self, task_ids: Sequence[str], by: Principal, text: str | None = None, note: str | None = None
    ) -> list[Cancelled]:
        """One answer per task, in order. Raises `Malformed` for what is no id, and then cancels none."""
        checked = parse_ids(task_ids)
        if text is not None:
            check_prose(text, "text", limits.REASON_TEXT_MAX_CHARS)
        if note is not None:
            check_prose(note, "note", limits.NOTE_MAX_CHARS)
        if not checked:
            return []
        return await self._ledger.cancel(
            [Cancellation(by.organization, each, by.name, Reason.USER, text, note, self._grace_us) for each in checked]
        )

    async def job(self, job_id: str, by: Principal, text: str | None = None) -> bool:
        """Stop a job. False when it had ended. Raises `NotFound`.

        When this answers, up to `limits.CASCADE_MAX_TASKS` of its open tasks are cancelled or asked to stop, and none
        of these is claimed any more; a duty goes on with the rest.
        """
        checked = ids.parse(job_id, "job")
        if text is not None:
            check_prose(text, "text", limits.REASON_TEXT_MAX_CHARS)
        stopping = await self._ledger.cancel_job(by.organization, checked, by.name, text)
        if stopping:
            # The request stands already: where the store is away now, all of it is left to the duty.
            with contextlib.suppress(Unavailable):
                await self._ledger.cascade(limits.CASCADE_MAX_TASKS, self._grace_us)
        self._wakeups.announce(Topic.CONTROL)
        return stopping


def parse_ids(task_ids: Sequence[str]) -> list[str]:
    """The ids in their one form. Raises `Malformed`, and `Invalid` for more than one call may name."""
    if len(task_ids) > limits.SUBMIT_MAX_TASKS:
        raise Invalid(
            f"one call takes {limits.SUBMIT_MAX_TASKS:,} tasks at most, not {len(task_ids):,}: split it",
            field="task_ids",
        )
    return ids.parse_all(task_ids)
