"""Unique tasks: who holds a key, and what becomes of a task that comes for one that is held.

Keys are locked in ascending order before anything is asked about their holders, in statements of their own: what the
last one did who had them is seen then, and nobody else decides about them before the commit. That a holder ends costs
nothing: how it stands is looked at when another task comes.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from perdure.domain import limits
from perdure.domain.states import Reason, TaskState
from perdure.domain.task import Task
from perdure.domain.unique import OnConflict, SubmitOutcome, UniqueKey
from perdure.errors import InvariantBroken, Overloaded, PerdureError, UniqueConflict
from perdure.store.ledger import CancelAnswer, Cancellation, Submitted
from perdure.store.relational.admission import Answer, refuse_overload
from perdure.store.relational.bodies import hex_of_base64
from perdure.store.relational.cancelling import cancel
from perdure.store.relational.counting import PENDING, QUEUED, count_moves
from perdure.store.relational.ending import leave
from perdure.store.relational.looking import look
from perdure.store.relational.transaction import Transaction, batch
from perdure.store.wakeups import Topic

NOTHING: Mapping[int, str] = {}
_OPTION = '"unique":'
_NOBODY = ""
_MOVING = frozenset({SubmitOutcome.REPLACED, SubmitOutcome.DEBOUNCED})

Slot = tuple[str, str]
"""Organization and key."""


class _Asking(NamedTuple):
    """A task that comes for a key."""

    slot: Slot
    task_id: str
    unique: UniqueKey

    @property
    def row(self) -> tuple[str, str, str]:
        return (*self.slot, self.task_id)


class _Holder(NamedTuple):
    """The task that holds a key. `state` is none where there is no such task (any more)."""

    task_id: str
    taken_us: int
    state: TaskState | None
    alone: bool
    place: int | None = None
    """Its place in the call, where it is a task of that."""


def unique_of(options: str | None) -> UniqueKey | None:
    """The key of a task with these options."""
    if options is None or _OPTION not in options:
        return None
    said = msgspec.json.decode(options).get("unique")
    return None if said is None else msgspec.convert(said, UniqueKey)


def with_gates_of(options: str, others: str | None) -> str:
    """The options of a task with the gates of another one, in the place of its own."""
    said: dict[str, Any] = msgspec.json.decode(options)
    gates = None if others is None else msgspec.json.decode(others).get("gates")
    if said.pop("gates", None) == gates:
        return options
    if gates is not None:
        said["gates"] = gates
    return msgspec.json.encode(said, order="deterministic").decode()


def moves_others(options: str | None) -> bool:
    """Whether a task with these options may replace or debounce another."""
    unique = unique_of(options)
    return unique is not None and unique.on_conflict in (OnConflict.REPLACE, OnConflict.DEBOUNCE)


def _asking(task: Task) -> _Asking | None:
    unique = unique_of(task.rare.options)
    return None if unique is None else _Asking((task.terms.organization, unique.key), task.id, unique)


class _Keys:
    """The keys that tasks come for, locked, with their holders."""

    def __init__(self, tx: Transaction, asking: Sequence[_Asking]) -> None:
        self._tx = tx
        first: dict[Slot, _Asking] = {}
        for each in asking:
            first.setdefault(each.slot, each)
        self._asked_us = tx.now_us
        rows = [(*each.row, each.unique.until_us(tx.now_us)) for _, each in sorted(first.items())]
        tx.run("unique_take", batch=batch(rows))
        # It may have waited for who had them: what it does to their tasks comes after what they did.
        tx.refresh()
        found = tx.document("unique_standing", batch=batch([each.row for each in asking]))
        self.holders: dict[Slot, _Holder] = {}
        self.known: dict[str, TaskState] = {}
        """Tasks of the call that are there already, by id: a repeated call whose answer was lost."""
        for each, (task_id, taken_us, state, in_job, own) in zip(asking, found, strict=True):
            if own is not None:
                self.known[each.task_id] = TaskState(own)
            known = None if state is None else TaskState(state)
            self.holders[each.slot] = _Holder(task_id, taken_us, known, not in_job)
        self._stored = dict(self.holders)

    def meet(self, each: _Asking, holder: _Holder) -> SubmitOutcome | None:
        """What a task does to the holder of its key; `None`: it is refused."""
        return each.unique.meet(holder.state, self._tx.now_us - holder.taken_us, holder.alone)

    def look_closely(self, asking: Sequence[_Asking]) -> None:
        """Lock the holders that may be moved, so that nobody claims them meanwhile."""
        moving = {each.slot for each in asking if self.meet(each, self.holders[each.slot]) in _MOVING}
        if not moving:
            return
        slots = sorted(moving)
        looked = look(self._tx, "cancel_look", [(slot[0], self.holders[slot].task_id) for slot in slots])
        for slot, (_, state, *_) in zip(slots, looked, strict=True):
            known = None if state is None else TaskState(state)
            self.holders[slot] = self.holders[slot]._replace(state=known)

    def give(self, asking: Sequence[_Asking]) -> None:
        """Let these tasks hold their keys, each the last that it has; what was taken for nobody is given back."""
        held = {each.slot: each for each in asking}
        changed = [
            each
            for each in held.values()
            if self._stored[each.slot].task_id != each.task_id or self._stored[each.slot].state is not None
        ]
        if changed:
            rows = [(*each.row, each.unique.until_us(self._tx.now_us)) for each in changed]
            self._tx.run("unique_hold", batch=batch(rows))
        self.drop(set(held))

    def drop(self, held: set[Slot]) -> None:
        """Give back what was taken just now, but for these."""
        idle = [
            (*slot, holder.task_id)
            for slot, holder in self._stored.items()
            if slot not in held and holder.state is None and holder.taken_us == self._asked_us
        ]
        if idle:
            self._tx.run("unique_drop", batch=batch(idle))


class Deciding:
    """What becomes of the tasks of a call that have keys: decided before the others are written, done afterwards."""

    def __init__(self, tx: Transaction, tasks: Sequence[Task], asking: Mapping[int, _Asking]) -> None:
        self._tx = tx
        self._tasks = tasks
        self._asking = asking
        self._keys = _Keys(tx, list(asking.values()))
        self._keys.look_closely(list(asking.values()))
        self._full: dict[Slot, PerdureError] = {}
        self._begin()

    def _begin(self) -> None:
        self._holders = dict(self._keys.holders)
        self._made: list[int] = []
        self._replaced: list[tuple[_Holder, int]] = []
        self._debounced: list[tuple[_Holder, int]] = []
        self._shared: list[tuple[int, int]] = []
        """Places of tasks that are answered with a task of the same call, and the place of that."""

    def decide(self, answers: list[Answer | None]) -> None:
        """Answer those that make no task; the others have room in their queues, or are refused."""
        while True:
            tried = list(answers)
            self._begin()
            for place, each in self._asking.items():
                if tried[place] is None:
                    tried[place] = self._answer(place, each)
            refuse_overload(self._tx, self._tasks, tried)
            full = [place for place in self._made if isinstance(tried[place], Overloaded)]
            if not full:
                answers[:] = tried
                return
            # Others may have been answered with one of these: they share its fate.
            for place in full:
                refusal = tried[place]
                assert isinstance(refusal, PerdureError)
                answers[place] = self._full[self._asking[place].slot] = refusal

    def _answer(self, place: int, each: _Asking) -> Answer | None:
        known = self._keys.known.get(each.task_id)
        if known is not None:
            return Submitted(each.task_id, known, True)
        holder = self._holders[each.slot]
        if holder.place is not None and holder.task_id == each.task_id:
            self._shared.append((place, holder.place))
            return Submitted(each.task_id, None, True)
        outcome = self._keys.meet(each, holder)
        if outcome is None:
            return conflict(each, holder)
        if outcome in (SubmitOutcome.EXISTING, SubmitOutcome.DEBOUNCED):
            if holder.place is not None:
                self._shared.append((place, holder.place))
            if outcome is SubmitOutcome.DEBOUNCED:
                self._debounced.append((holder, place))
            return Submitted(holder.task_id, holder.state, False, outcome)
        if each.slot in self._full:
            return self._full[each.slot]
        if outcome is SubmitOutcome.REPLACED:
            self._replaced.append((holder, place))
        self._made.append(place)
        self._holders[each.slot] = _Holder(each.task_id, self._tx.now_us, TaskState.QUEUED, True, place)
        return None

    def finish(self, answers: list[Answer]) -> None:
        """Once the tasks are written: let them hold their keys, and move those that they replace or debounce."""
        self._keys.give([self._asking[place] for place in self._made])
        replaced = {place for _, place in self._replaced}
        for place in replaced:
            answers[place] = _submitted(answers[place])._replace(outcome=SubmitOutcome.REPLACED)
        for place, first in self._shared:
            answers[place] = _submitted(answers[place])._replace(state=_submitted(answers[first]).state)
        if self._debounced:
            self._debounce(answers)
        if self._replaced:
            self._replace()
        self._follow_twins(answers)

    def _replace(self) -> None:
        asked = []
        for holder, place in self._replaced:
            task = self._tasks[place]
            asked.append(
                Cancellation(
                    task.terms.organization,
                    holder.task_id,
                    task.terms.principal,
                    Reason.SUPERSEDED,
                    f"task {task.id} has replaced it",
                    None,
                    limits.CANCEL_GRACE_DEFAULT_US,
                )
            )
        for cancelled in cancel(self._tx, asked):
            if cancelled.answer is not CancelAnswer.CANCELLED:
                raise InvariantBroken("a task that is to be replaced does not wait", fact=cancelled.answer)

    def _debounce(self, answers: list[Answer]) -> None:
        """Each holder has the payload of the last task that came for its key."""
        tx = self._tx
        last = {holder.task_id: (holder, place) for holder, place in self._debounced}
        named = [(self._tasks[place].terms.organization, id) for id, (_, place) in last.items()]
        stand = dict(zip(last, look(tx, "cancel_look", named), strict=True))
        options = self._limited_by({stand[id][0]: self._tasks[place] for id, (_, place) in last.items()})
        rows, moves = [], []
        for id, (holder, place) in last.items():
            n, state, _, lane, *_ = stand[id]
            task = self._tasks[place]
            ttl_us = task.terms.ttl_us
            expires_us = None if ttl_us is None else tx.now_us + ttl_us
            rows.append((n, self._due_us(holder, place), expires_us, options[n]))
            if state == QUEUED:
                moves.append((lane, QUEUED, PENDING, 1))
            plain = task.terms.encoding == "json"
            payload = task.payload if plain else hex_of_base64(task.payload)
            tx.run("redrive_payload", n=n, payload=payload, encoding=task.terms.encoding)
            tx.run("payload_options", n=n, options=options[n])
        self._remember(stand)
        tx.run("debounce", batch=batch(rows))
        count_moves(tx, moves)
        tx.announce(Topic.READY | Topic.DUE)
        leave(tx, [(n, True) for n, *_ in rows])
        for holder, place in self._debounced:
            waits = TaskState.RETRYING if stand[holder.task_id][1] == TaskState.RETRYING else TaskState.PENDING
            answers[place] = _submitted(answers[place])._replace(state=waits)

    def _limited_by(self, last: Mapping[int, Task]) -> dict[int, str]:
        """The options of holders with the gates that another payload makes: what they are limited by goes with it."""
        found = self._tx.document("unique_of", batch=batch(list(last)))
        return {n: with_gates_of(options, last[n].rare.options) for n, _, _, options in found}

    def _remember(self, stand: Mapping[str, Sequence[Any]]) -> None:
        """One event for each debounce; the first of a task tells since when it was queued."""
        queued_us = {id: self._tx.value("postpone_look", n=n) for id, (n, *_) in stand.items()}
        events = []
        for holder, place in self._debounced:
            n, generation = stand[holder.task_id][0], stand[holder.task_id][5]
            terms = self._tasks[place].terms
            told = {"until_us": self._due_us(holder, place), "queued_us": queued_us.pop(holder.task_id, None)}
            row = (terms.organization, n, None, generation, "debounced", terms.principal, terms.initiator, batch(told))
            events.append(row)
        self._tx.run("event_insert", batch=batch(events))

    def _due_us(self, holder: _Holder, place: int) -> int:
        return self._asking[place].unique.due_us(self._tx.now_us, holder.taken_us)

    def _follow_twins(self, answers: list[Answer]) -> None:
        """One that repeats the idempotency key of another of the call is answered with the task that this got."""
        other = {
            each.task_id: answer
            for place, each in self._asking.items()
            if isinstance(answer := answers[place], Submitted) and answer.id != each.task_id
        }
        for place, answer in enumerate(answers):
            if isinstance(answer, Submitted) and answer.replayed and answer.id in other:
                answers[place] = other[answer.id]._replace(replayed=True)


def deciding(tx: Transaction, tasks: Sequence[Task], answers: list[Answer | None]) -> Deciding | None:
    """Decide about those of the tasks that have keys and no answer yet; none where there are none.

    Where there are any, all tasks of the call have been admitted to their queues.
    """
    asking = {
        place: each
        for place, task in enumerate(tasks)
        if answers[place] is None and (each := _asking(task)) is not None
    }
    if not asking:
        return None
    made = Deciding(tx, tasks, asking)
    made.decide(answers)
    return made


def refuse_job_tasks(tx: Transaction, tasks: Sequence[Task]) -> UniqueConflict | None:
    """Let tasks of a job hold their keys, or tell which of these others hold: then none of them does."""
    asking = {task.id: each for task in tasks if (each := _asking(task)) is not None}
    if not asking:
        return None
    keys = _Keys(tx, list(asking.values()))
    met = _take(tx, keys, list(asking.values()))
    if not met:
        keys.give(list(asking.values()))
        return None
    keys.drop(set())
    names = [task.rare.name or task.id for task in tasks if task.id in met]
    first = next(iter(met.values()))
    shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    return UniqueConflict(f"{first.message} (tasks of the job: {shown})", names=names, **first.fields)


def take_again(tx: Transaction, numbers: Sequence[int], anew: Mapping[int, str] = NOTHING) -> dict[int, UniqueConflict]:
    """Let tasks that are to run again hold their keys: the conflicts of those that cannot, by number.

    `anew`: other options that some of them will have. One that has another key by them holds that, and leaves its own.
    """
    found = tx.document("unique_of", batch=batch(numbers)) if numbers else []
    asking: dict[int, _Asking] = {}
    leaving: dict[int, _Asking] = {}
    for n, organization, task_id, options in found:
        before, unique = unique_of(options), unique_of(anew.get(n, options))
        if before is None or unique is None:
            continue
        asking[n] = _Asking((organization, unique.key), task_id, unique)
        if unique.key != before.key:
            # For nobody: where no one holds the old key any more, this does not make the task its holder again.
            leaving[n] = _Asking((organization, before.key), _NOBODY, before)
    if not asking:
        return {}
    keys = _Keys(tx, [*asking.values(), *leaving.values()])
    met = _take(tx, keys, list(asking.values()))
    keys.give([each for each in asking.values() if each.task_id not in met])
    left = [(*each.slot, asking[n].task_id) for n, each in leaving.items() if asking[n].task_id not in met]
    if left:
        tx.run("unique_drop", batch=batch(left))
    return {n: met[each.task_id] for n, each in asking.items() if each.task_id in met}


def _take(tx: Transaction, keys: _Keys, asking: Sequence[_Asking]) -> dict[str, UniqueConflict]:
    """The conflicts of tasks that want to hold their keys one after the other, by task."""
    met: dict[str, UniqueConflict] = {}
    for each in asking:
        holder = keys.holders[each.slot]
        if holder.task_id != each.task_id and keys.meet(each, holder) is not SubmitOutcome.CREATED:
            met[each.task_id] = conflict(each, holder)
        else:
            keys.holders[each.slot] = _Holder(each.task_id, tx.now_us, TaskState.PENDING, False)
    return met


def conflict(each: _Asking, holder: _Holder) -> UniqueConflict:
    """Another task holds the key."""
    return UniqueConflict(
        f"task {holder.task_id} ({holder.state}) holds the key {each.unique.key!r}: only one may at a time",
        task_id=holder.task_id,
        state=None if holder.state is None else str(holder.state),
        key=each.unique.key,
    )


def _submitted(answer: Answer) -> Submitted:
    if not isinstance(answer, Submitted):
        raise InvariantBroken("a unique task that was to be stored is refused", fact=str(answer))
    return answer
