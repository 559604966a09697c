"""Reports of running handlers: progress, phases, checkpoints, parts of results, logs."""

from collections.abc import Sequence
from typing import NamedTuple

from perdure.domain import limits
from perdure.domain.attempt import Part, Report
from perdure.errors import Conflict, Invalid, PerdureError
from perdure.store.ledger import Reported
from perdure.store.relational.counting import CANCELLING, LEASED, RUNNING, count_moves
from perdure.store.relational.logs import LogRoom
from perdure.store.relational.renewing import lease_lost
from perdure.store.relational.transaction import Transaction, batch

Answer = Reported | PerdureError


class _Standing(NamedTuple):
    n: int
    lane: int
    state: str
    cancel_us: int | None
    generation: int


def report(tx: Transaction, reports: Sequence[Report]) -> list[Answer]:
    """Store what live attempts report."""
    document = batch([each.hold for each in reports])
    standings = {
        place: _Standing(n, lane, state, cancel_us, generation)
        for place, n, lane, state, _, cancel_us, generation in tx.document("report_standing", batch=document)
    }
    room = LogRoom(tx, {standings[place].n for place, each in enumerate(reports) if each.logs and place in standings})
    answers: list[Answer] = []
    accepted: list[tuple[_Standing, Report]] = []
    for place, each in enumerate(reports):
        standing = standings.get(place)
        answer = _answer(tx, standing, each, room)
        answers.append(answer)
        if standing is not None and isinstance(answer, Reported):
            accepted.append((standing, each))
            room.note(standing.n, each.logs)
    if accepted:
        _write(tx, accepted)
    room.write()
    return answers


def _answer(tx: Transaction, standing: _Standing | None, report: Report, room: LogRoom) -> Answer:
    if standing is None:
        return lease_lost(report.hold)
    if standing.state == CANCELLING and not _only_logs(report):
        return Conflict(
            f"task {report.hold.task_id} is being cancelled: stop, reports are not taken any more",
            task_id=report.hold.task_id,
            cancel_us=standing.cancel_us,
        )
    if (refusal := room.refusal(standing.n, report.logs)) is not None:
        return refusal
    if report.part is not None:
        return _take_part(tx, standing.n, report.hold.attempt_id, report.part)
    return Reported(False, standing.cancel_us)


def _only_logs(report: Report) -> bool:
    """A handler that stops may still say how."""
    said = report.progress, report.phase, report.part, report.checkpoint
    return bool(report.logs) and all(each is None for each in said)


def _take_part(tx: Transaction, n: int, attempt: str, part: Part) -> Answer:
    highest, final, same_key = tx.document("part_known", n=n, attempt=attempt, key=part.key, named=int(part.named))
    if same_key is not None and same_key[0] != part.sha256:
        return Conflict(
            f"part {part.key!r} is stored with another checksum: use another key for other content",
            key=part.key,
            sha256=same_key[0],
        )
    if same_key is not None and same_key[1] == attempt:
        return Reported(True, None)
    refusal = _out_of_place(part, highest or 0, bool(final))
    if refusal is not None:
        return refusal
    if same_key is not None:
        place = {"sequence": part.sequence, "final": int(part.final)}
        tx.run("part_adopt", n=n, attempt=attempt, key=part.key, **place)
        return Reported(True, None)
    tx.run(
        "part_insert",
        n=n,
        attempt=attempt,
        sequence=part.sequence,
        key=part.key,
        named=int(part.named),
        sha256=part.sha256,
        final=int(part.final),
        data=part.data.data,
        encoding=part.data.encoding,
    )
    return Reported(False, None)


def _out_of_place(part: Part, highest: int, final: bool) -> PerdureError | None:
    if final:
        return Conflict("the final part is stored already: nothing may follow it", sequence=highest)
    if part.sequence != highest + 1:
        return Conflict(
            f"part {part.sequence} was sent where part {highest + 1} is next: parts count from 1 without gaps",
            sequence=part.sequence,
            expected=highest + 1,
        )
    if part.sequence > limits.PARTS_MAX:
        return Invalid(f"a result has at most {limits.PARTS_MAX} parts", field="sequence")
    return None


def _write(tx: Transaction, accepted: list[tuple[_Standing, Report]]) -> None:
    starting = {standing.n: (standing, report) for standing, report in accepted if standing.state == LEASED}
    if starting:
        tx.run("start", batch=batch([(n, starting[n][1].ran_us) for n in sorted(starting)]))
        count_moves(tx, [(standing.lane, LEASED, RUNNING, 1) for standing, _ in starting.values()])
    progress = [
        (standing.n, report.phase, *(report.progress or (None, None, None, None)))
        for standing, report in accepted
        if report.progress is not None or report.phase is not None
    ]
    if progress:
        tx.run("progress_write", batch=batch(progress))
    checkpoints = [
        (standing.n, standing.generation, report.checkpoint)
        for standing, report in accepted
        if report.checkpoint is not None
    ]
    if checkpoints:
        tx.run("checkpoint_write", batch=batch(checkpoints))
    phases = [
        (
            report.hold.organization,
            standing.n,
            None,
            standing.generation,
            "phase",
            "worker",
            None,
            batch({"phase": report.phase, "attempt": report.hold.attempt_id}),
        )
        for standing, report in accepted
        if report.phase is not None
    ]
    if phases:
        tx.run("event_insert", batch=batch(phases))
