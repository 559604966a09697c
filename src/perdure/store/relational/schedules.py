"""Schedules: documents with how they stand, and what came of their instants."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from perdure.domain.schedule import Cause, FireOutcome, SkipReason, Stretch
from perdure.errors import Conflict, invariant
from perdure.store.relational import definitions, firing
from perdure.store.relational.lanes import Lanes
from perdure.store.relational.operation import Operation, Writer
from perdure.store.relational.transaction import Transaction, batch
from perdure.store.relational.views import Readers
from perdure.store.schedules import Asked, Due, Fire, Fired, Firing, Made, Schedule, Seen, Standing
from perdure.store.wakeups import Topic

T = TypeVar("T")

_ACT = Operation("act", 5, lambda tx, acts: [act(tx) for act in acts], max_items=1)
FIRE_MAX_ITEMS = 200


class RelationalSchedules:
    """Meets `store.schedules.Schedules`."""

    def __init__(self, writer: Writer, readers: Readers, submitting: firing.Submitting) -> None:
        self._writer = writer
        self._readers = readers
        self._submitting = submitting
        self._lanes = Lanes()
        self._fire = Operation("fire", 8, self._fire_all, max_items=FIRE_MAX_ITEMS)

    def _fire_all(self, tx: Transaction, firings: list[Firing]) -> list[Any]:
        return firing.fire(tx, firings, self._submitting, self._lanes)

    async def get(self, organization: str, name: str) -> Schedule | None:
        return await self._readers.read(lambda tx: _get(tx, organization, name))

    async def page(self, organization: str, after: str, limit: int, of_set: str | None = None) -> list[Schedule]:
        rows = await self._readers.read(
            lambda tx: tx.run("schedule_list", organization=organization, after=after, count=limit, named=of_set)
        )
        return [_schedule(row) for row in rows]

    async def put(
        self,
        organization: str,
        name: str,
        document: str,
        actor: str,
        *,
        seen: Seen | None,
        standing: Standing,
        skipped: Sequence[Stretch] = (),
        drop_waiting: bool = False,
    ) -> Schedule:
        put = definitions.Put(organization, "schedule", name, document, actor, seen.version if seen is not None else 0)
        return await self._act(lambda tx: _put(tx, put, seen, standing, skipped, drop_waiting))

    async def delete(self, organization: str, name: str, actor: str, expected: int | None = None) -> bool:
        wanted = definitions.Delete(organization, "schedule", name, actor, expected)
        return await self._act(lambda tx: _delete(tx, wanted))

    async def pause(self, organization: str, name: str, actor: str) -> bool:
        return await self._act(
            lambda tx: bool(tx.run("schedule_pause", organization=organization, name=name, actor=actor))
        )

    async def due(self, limit: int) -> Due:
        return await self._readers.read(lambda tx: _due(tx, limit))

    async def fire(self, firings: Sequence[Firing]) -> list[Fired]:
        return await self._writer.gather(self._fire, firings)

    async def ask(self, asked: Asked) -> list[Made]:
        return await self._act(lambda tx: firing.ask(tx, asked, self._submitting, self._lanes))

    async def fires(self, organization: str, name: str, before: tuple[int, str] | None, limit: int) -> list[Fire]:
        instant, outcome = before or (2**62, "")
        rows = await self._readers.read(
            lambda tx: tx.run(
                "fire_list", organization=organization, schedule=name, before=instant, named=outcome, count=limit
            )
        )
        return [_fire(row) for row in rows]

    async def _act(self, act: Callable[[Transaction], T]) -> T:
        answers: Any = await self._writer.gather(_ACT, [act])
        return answers[0]  # type: ignore[no-any-return]


def _schedule(row: tuple[Any, ...]) -> Schedule:
    found = Schedule._make(row)
    return found._replace(
        paused=bool(found.paused),
        last_outcome=None if found.last_outcome is None else FireOutcome(found.last_outcome),
        last_reason=None if found.last_reason is None else SkipReason(found.last_reason),
    )


def _fire(row: tuple[Any, ...]) -> Fire:
    found = Fire._make(row)
    return found._replace(
        cause=Cause(found.cause),
        outcome=FireOutcome(found.outcome),
        reason=None if found.reason is None else SkipReason(found.reason),
    )


def _get(tx: Transaction, organization: str, name: str) -> Schedule | None:
    rows = tx.run("schedule_get", organization=organization, name=name)
    return _schedule(rows[0]) if rows else None


def _due(tx: Transaction, limit: int) -> Due:
    rows = tx.run("schedule_due", count=limit)
    return Due([_schedule(row) for row in rows], tx.value("schedule_next"), tx.now_us)


def _put(
    tx: Transaction,
    put: definitions.Put,
    seen: Seen | None,
    standing: Standing,
    skipped: Sequence[Stretch],
    drop_waiting: bool,
) -> Schedule:
    rows = tx.run("schedule_standing", organization=put.organization, name=put.name)
    stands = (rows[0][0], rows[0][1]) if rows else None
    if stands != (None if seen is None else (seen.version, seen.next_us)):
        raise _moved(put.name)
    has_come = standing.next_us is not None and standing.next_us <= tx.now_us
    if has_come and (seen is None or seen.next_us != standing.next_us):
        # It passed before there was something for it to make: the first instant is a later one now.
        raise _moved(put.name)
    stored = definitions.put_over_what_is_there(tx, put)
    if stored is None or isinstance(stored, Conflict):
        raise stored or _moved(put.name)
    tx.run(
        "schedule_put",
        organization=put.organization,
        name=put.name,
        version=stored.version,
        **standing._asdict(),
    )
    firing.keep_skips(tx, _place(put), [(stretch, None) for stretch in skipped])
    if drop_waiting and rows and rows[0][2] is not None:
        _drop_waiting(tx, put, rows[0][2])
    tx.announce(Topic.CONTROL)
    found = _get(tx, put.organization, put.name)
    invariant(found is not None, "a schedule is there once it was put")
    return found  # type: ignore[return-value]


def _delete(tx: Transaction, wanted: definitions.Delete) -> bool:
    rows = tx.run("schedule_standing", organization=wanted.organization, name=wanted.name)
    gone = definitions.delete(tx, wanted)
    if isinstance(gone, Conflict):
        raise gone
    if gone and rows:
        if rows[0][2] is not None:
            _drop_waiting(tx, wanted, rows[0][2])
        tx.run("schedule_delete", organization=wanted.organization, name=wanted.name)
    return gone


def _place(of: definitions.Put | definitions.Delete) -> dict[str, str]:
    return {"organization": of.organization, "schedule": of.name}


def _drop_waiting(tx: Transaction, of: definitions.Put | definitions.Delete, waiting_us: int) -> None:
    tx.run("fire_remove", **_place(of), batch=batch([waiting_us]))
    firing.keep_skips(tx, _place(of), [(Stretch(waiting_us, waiting_us, 1, SkipReason.CHANGED), None)])
    tx.run("schedule_drop_waiting", organization=of.organization, name=of.name)


def _moved(name: str) -> Conflict:
    return Conflict(f"schedule {name!r} has changed meanwhile: read it again, then decide", what="schedule", id=name)
