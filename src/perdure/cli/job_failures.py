"""Why tasks of a job failed, in a few lines."""

from collections.abc import Sequence

from perdure.cli.session import Session
from perdure.domain.states import BAD_ENDS, Reason
from perdure.store.views import JobTaskView

SHOWN_FAILURES = 5
_FOR_OTHERS = frozenset({Reason.UPSTREAM_FAILED, Reason.TRIGGER_UNMET})
"""Such ends follow from others, which say more."""


async def failures_of(session: Session, tasks: Sequence[JobTaskView]) -> list[str]:
    """Why the first few of the tasks that failed did, a line each: name, end, id and error."""
    failed = [task for task in tasks if task.state in BAD_ENDS and task.reason not in _FOR_OTHERS]
    lines = []
    for task in failed[:SHOWN_FAILURES]:
        view = await session.views.task(session.organization, task.id)
        error = view.last_error if view is not None else None
        cause = f": {error.type}: {error.message}" if error is not None else ""
        lines.append(f"{task.name} {task.state} ({task.reason}), task {task.id}{cause}")
    if len(failed) > SHOWN_FAILURES:
        lines.append(f"... and {len(failed) - SHOWN_FAILURES} more")
    return lines
