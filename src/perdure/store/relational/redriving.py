"""Running ended tasks again, and being done with dead letters."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from perdure.domain.states import TaskState
from perdure.domain.task import Body
from perdure.errors import Conflict, NotFound, PerdureError, Redacted
from perdure.store.ledger import Redrive
from perdure.store.relational import acts
from perdure.store.relational.bodies import text_of
from perdure.store.relational.counting import PENDING, count_moves
from perdure.store.relational.ending import settle_touched
from perdure.store.relational.looking import look
from perdure.store.relational.retaining import remove_tasks
from perdure.store.relational.transaction import Transaction, batch
from perdure.store.relational.unique import take_again
from perdure.store.specified import Specified

_REDRIVABLE = (TaskState.FAILED, TaskState.DEAD_LETTERED)


def redrive(tx: Transaction, redrives: Sequence[Redrive]) -> list[TaskState | PerdureError]:
    """Run failed tasks again, and revive what was cancelled because of them."""
    looked = look(tx, "redrive_look", [(each.organization, each.task_id) for each in redrives])
    answers: list[TaskState | PerdureError] = []
    chosen: dict[int, tuple[Redrive, list[Any]]] = {}
    for each, row in zip(redrives, looked, strict=True):
        refusal = _refuse(each, row) if row[0] not in chosen else _conflict(each, "being run again")
        if refusal is None:
            chosen[row[0]] = (each, row)
        answers.append(refusal or TaskState.PENDING)
    anew = {n: each.options for n, (each, _) in chosen.items() if each.options is not None}
    held = take_again(tx, sorted(chosen), anew)
    answers = [
        held.get(row[0], answer) if row[0] in chosen else answer for answer, row in zip(answers, looked, strict=True)
    ]
    chosen = {n: again for n, again in chosen.items() if n not in held}
    if chosen:
        again = {n: Again(each.actor, each.payload, row, each.delay_us) for n, (each, row) in chosen.items()}
        for n in sorted(again.keys() & anew.keys()):
            tx.run("payload_options", n=n, options=anew[n])
        run_again(tx, again)
        states = tx.document("task_states", batch=batch([(each.organization, each.task_id) for each in redrives]))
        answers = [
            answer if isinstance(answer, PerdureError) else TaskState(state)
            for answer, state in zip(answers, states, strict=True)
        ]
    return answers


def _refuse(each: Redrive, row: list[Any]) -> PerdureError | None:
    n, state, redacted = row[:3]
    if n is None:
        return NotFound(f"there is no task {each.task_id}", what="task", id=each.task_id)
    if state not in _REDRIVABLE:
        return _conflict(each, state)
    if redacted and each.payload is None:
        return Redacted(
            f"the payload of task {each.task_id} was removed: give a new one to run it again", task_id=each.task_id
        )
    return None


def _conflict(each: Redrive, state: str) -> Conflict:
    return Conflict(
        f"task {each.task_id} is {state}: only failed and dead-lettered tasks can be run again",
        task_id=each.task_id,
        state=state,
    )


class Again(NamedTuple):
    """A failed task that is to run again: who wants it, perhaps with another payload, and how it stands."""

    actor: str
    payload: Body | None
    row: list[Any]
    """Number, state, redacted, lane, job (none where that tells of it itself), generation, initiator, organization."""
    delay_us: int = 0


def run_again(tx: Transaction, chosen: Mapping[int, Again], stopped: Sequence[list[Any]] = ()) -> int:
    """Run failed tasks again, by number, with what was cancelled for them; how many those are.

    `stopped` are others to be revived: rows of number, lane, state, organization, generation, initiator, actor.
    """
    redriven = sorted(chosen)
    cancelled = {row[0]: row for row in (*stopped, *_fallen(tx, [(n, chosen[n].actor) for n in redriven]))}
    fallen = list(cancelled.values())
    held = take_again(tx, [row[0] for row in fallen])
    if held:
        raise next(iter(held.values()))
    moves = [(each.row[3], str(each.row[1]), PENDING, 1) for each in chosen.values()]
    again = redriven + [row[0] for row in fallen]
    moves += [(row[1], row[2], PENDING, 1) for row in fallen]
    everything = batch(again)
    for n, each in chosen.items():
        if each.payload is not None:
            tx.run("redrive_payload", n=n, payload=text_of(each.payload), encoding=each.payload.encoding)
    tx.run("redrive_remember", batch=everything)
    tx.run("redrive_remember_jobs", batch=everything)
    tx.run("redrive_untally", batch=everything)
    tx.run("redrive_live", batch=everything)
    later = [(n, each.delay_us) for n, each in chosen.items() if each.delay_us]
    if later:
        tx.run("redrive_delay", batch=batch(later))
    tx.run("redrive_remove", batch=everything)
    tx.run("redrive_unfrontier", batch=everything)
    count_moves(tx, moves)
    _remember(tx, chosen, fallen)
    _wait_again(tx, again)
    return len(fallen)


def _fallen(tx: Transaction, redriven: Sequence[tuple[int, str]]) -> list[list[Any]]:
    """What was cancelled because of these, asked until no more comes.

    Where others write at the same time, a cascade may have gone on while its rows were waited for, or another redrive
    may have moved some of these: they have no state then.
    """
    document = batch(redriven)
    known = 0
    while True:
        fallen: list[list[Any]] = tx.document("redrive_descendants", batch=document)
        if len(fallen) <= known and all(state is not None for _, _, state, *_ in fallen):
            return fallen
        known = len(fallen)


def _wait_again(tx: Transaction, numbers: list[int]) -> None:
    """Count parents anew, also for those that still wait for one of these, and let go what waits for nothing."""
    waiting = tx.document("redrive_children", batch=batch(numbers))
    tx.run("waits_recount", batch=batch(sorted({*numbers, *waiting})))
    tx.run("touched_stage", batch=batch(numbers))
    settle_touched(tx)


def _remember(tx: Transaction, chosen: Mapping[int, Again], fallen: list[list[Any]]) -> None:
    rows: list[tuple[Any, ...]] = []
    for n, each in chosen.items():
        _number, state, _redacted, _lane, job, generation, initiator, organization = each.row[:8]
        data = batch({"edited": each.payload is not None, "from": state})
        rows.append((organization, n, job, generation + 1, "redriven", each.actor, initiator, data))
    for n, _lane, _state, organization, generation, initiator, actor in fallen:
        rows.append((organization, n, None, generation + 1, "revived", actor, initiator, None))
    tx.run("event_insert", batch=batch(rows))


def specified(tx: Transaction, organization: str, task_ids: Sequence[str]) -> list[Specified | None]:
    """What bears on another payload of each task."""
    rows = tx.document("redrive_specified", organization=organization, batch=batch(task_ids))
    return [None if row[0] is None else Specified(*row) for row in rows]


def discard(tx: Transaction, organization: str, task_ids: Sequence[str], actor: str) -> list[bool]:
    """Mark dead letters as done with."""
    letters = tx.document("dead_letter_look", organization=organization, batch=batch(task_ids))
    fresh = {row[0]: row for row in letters if row[0] is not None and not row[1]}
    if fresh:
        tx.run("discard_mark", batch=batch(sorted(fresh)))
        rows = [(organization, n, None, row[3], "discarded", actor, row[4], None) for n, row in fresh.items()]
        tx.run("event_insert", batch=batch(rows))
    return [row[0] is not None for row in letters]


def purge(tx: Transaction, organization: str, task_ids: Sequence[str], actor: str) -> list[bool]:
    """Remove dead letters whose jobs are not open."""
    letters = tx.document("dead_letter_look", organization=organization, batch=batch(task_ids))
    going = {
        row[0]: task_id for row, task_id in zip(letters, task_ids, strict=True) if row[0] is not None and not row[2]
    }
    if going:
        remove_tasks(tx, sorted(going))
        acts.remember(tx, organization, "purged", actor, [{"task": task_id} for task_id in going.values()])
    return [row[0] in going for row in letters]
