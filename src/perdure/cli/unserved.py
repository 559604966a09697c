"""Telling of tasks that nobody is there to run."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from perdure.cli.beside import beside_the_work
from perdure.cli.output import write_note
from perdure.cli.session import Session
from perdure.domain.likeness import nearest
from perdure.domain.limits import SECOND_US
from perdure.store.views import WorkerView

QUEUES_SHOWN = 5


class Waiting(NamedTuple):
    """What a worker must have to run a task that waits."""

    kind: str
    queue: str


async def note_unserved(session: Session, waiting: Collection[Waiting]) -> None:
    """Write a note that names the kinds that no live worker has, one for each that no worker ever had, and one for each
    queue that none of those serves who have the kind: their names may be mistyped. Which may be meant comes first.
    """
    if not waiting:
        return
    with beside_the_work("who could run it was not looked up"):
        active_us = round(session.system.settings.worker_active * SECOND_US)
        workers = await session.views.workers(session.organization, active_us)
        live = [each for each in workers if each.left_us is None]
        new = await _new_kinds(session, {each.kind for each in waiting}.difference(*(each.kinds for each in live)))
        for note in (*_meant(new), *_notes(sorted(set(waiting)), live), *map(_is_new, new)):
            write_note(note)


async def note_new_kinds(session: Session, kinds: Collection[str]) -> None:
    """Write a note for each of these kinds that no worker ever had, after those that may be meant instead."""
    new = await _new_kinds(session, kinds)
    for note in (*_meant(new), *map(_is_new, new)):
        write_note(note)


async def note_mistyped_kinds(session: Session, kinds: Collection[str]) -> None:
    """Write a note for each of these kinds that no worker ever had and that is nearly another one's name."""
    for note in _meant(await _new_kinds(session, kinds)):
        write_note(note)


async def _new_kinds(session: Session, kinds: Collection[str]) -> dict[str, str | None]:
    """Those of these kinds that no worker ever had, each with the kind that may be meant."""
    with beside_the_work("which kinds are known was not looked up"):
        known = [each.name for each in await session.operations.kinds(session.principal)]
        return {kind: nearest(kind, known) for kind in sorted({*kinds}.difference(known))}
    return {}


def _meant(new: Mapping[str, str | None]) -> Iterator[str]:
    """The first lines: short ones, for what has to be mended before all else."""
    return (f"kind {kind}: did you mean {near}?" for kind, near in new.items() if near is not None)


def _is_new(kind: str) -> str:
    return (
        f"the kind {kind} is new to this store: tasks submitted before its first worker keep the usual options,"
        " not its limits and retries"
    )


def _notes(waiting: Sequence[Waiting], workers: Sequence[WorkerView]) -> Iterator[str]:
    having = {each.kind: [worker for worker in workers if each.kind in worker.kinds] for each in waiting}
    missing = [kind for kind, able in having.items() if not able]
    if missing:
        named = f"kind{'s' if len(missing) > 1 else ''} {', '.join(missing)}"
        yield f"no live worker has the {named}: start one with `perdure worker MODULE:APP`"
    for kind, queue in waiting:
        served = sorted({each for worker in having[kind] for each in worker.queues})
        if served and queue not in served:
            more = f" and {len(served) - QUEUES_SHOWN} more" if len(served) > QUEUES_SHOWN else ""
            yield (
                f"no live worker serves the queue {queue} for the kind {kind}: those that have the kind serve"
                f" {', '.join(served[:QUEUES_SHOWN])}{more}"
            )
