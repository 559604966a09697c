"""Telling of tasks that nobody is there to run."""

from collections.abc import Collection

from perdure.cli.output import write_note
from perdure.cli.session import Session
from perdure.domain.limits import SECOND_US


async def note_unserved(session: Session, kinds: Collection[str]) -> None:
    """Write one note that names those of the kinds that no live worker has, if there are any."""
    if not kinds:
        return
    active_us = round(session.system.settings.worker_active * SECOND_US)
    workers = await session.views.workers(session.organization, active_us)
    served = {kind for worker in workers if worker.left_us is None for kind in worker.kinds}
    missing = sorted(set(kinds) - served)
    if missing:
        named = f"kind{'s' if len(missing) > 1 else ''} {', '.join(missing)}"
        write_note(f"no live worker has the {named}: start one with `perdure worker MODULE:APP`")
