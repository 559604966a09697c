"""Cancels, redrives, reports, keys and documents beside other transactions: each answer is true once it is given."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from backends.postgres.crew import Writer, settlings
from backends.postgres.racing import Beside, answer, run
from perdure.domain import limits
from perdure.domain.attempt import Lease, Progress, Report
from perdure.domain.outcome import Failure
from perdure.domain.retention import Retention
from perdure.domain.settlement import Settlement
from perdure.domain.states import Reason, TaskState
from perdure.errors import Conflict, IdempotencyConflict, LeaseLost, NotFound
from perdure.store.ledger import CancelAnswer, Cancellation, Cancelled, Redrive, SettleAnswer, Submitted
from perdure.store.postgres import settling, submission
from perdure.store.postgres.faults import RETRIED
from perdure.store.postgres.transaction import Transaction
from perdure.store.relational import cancelling, definitions, redriving, reporting, retaining

FAILED = Settlement.failed(Failure("ValueError", "boom"), Reason.PERMANENT, dead_letters=True)


def submitted(writer: Writer, **given: Any) -> str:
    """A task that is there."""
    (task,) = writer.tasks(1, **given)
    writer.submit([task])
    return task.id


def failed(writer: Writer) -> str:
    """A dead letter."""
    submitted(writer)
    (lease,) = writer.claim(1)
    writer.settle(settlings([lease], FAILED))
    return lease.hold.task_id


def cancel(tx: Transaction, *ids: str) -> list[Cancelled]:
    asked = [Cancellation("default", id, "bob", Reason.USER, None, None, limits.CANCEL_GRACE_DEFAULT_US) for id in ids]
    return cancelling.cancel(tx, asked)


def redrive(tx: Transaction, *ids: str) -> list[Any]:
    return redriving.redrive(tx, [Redrive("default", id, "bob") for id in ids])


def test_a_cancel_beside_a_claim_asks_the_holder_to_stop(writers: list[Writer], beside: Beside) -> None:
    id = submitted(writers[0])
    claim = writers[0].begin()
    (lease,) = writers[0].claim_in(claim, 1)
    cancelled = beside.held_up(writers[1], lambda tx: cancel(tx, id))
    writers[0].commit(claim)
    assert answer(cancelled)[0].answer is CancelAnswer.CANCELLING
    assert lease.hold.task_id == id


def test_a_cancel_beside_a_settle_tells_how_the_task_ended(writers: list[Writer], beside: Beside) -> None:
    id = submitted(writers[0])
    leases = writers[0].claim(1)
    settle = writers[0].begin()
    settling.settle(settle, settlings(leases))
    cancelled = beside.held_up(writers[1], lambda tx: cancel(tx, id))
    writers[0].commit(settle)
    assert answer(cancelled) == [Cancelled(CancelAnswer.ENDED, TaskState.SUCCEEDED, Reason.OK)]


def test_a_settle_beside_a_cancel_ends_the_task_cancelled(writers: list[Writer], beside: Beside) -> None:
    id = submitted(writers[0])
    leases = writers[0].claim(1)
    open_cancel = writers[0].begin()
    assert cancel(open_cancel, id)[0].answer is CancelAnswer.CANCELLING
    settled = beside.held_up(writers[1], lambda tx: settling.settle(tx, settlings(leases)))
    writers[0].commit(open_cancel)
    assert answer(settled)[0].state is TaskState.CANCELLED


def test_a_cancel_that_comes_between_two_statements_of_a_settle_ends_the_task(writers: list[Writer]) -> None:
    id = submitted(writers[0])
    leases = writers[0].claim(1)

    class Interrupted(Transaction):
        def run(self, name: str, /, **bindings: Any) -> list[tuple[Any, ...]]:
            if name == "settle_return":
                run(writers[1], lambda tx: cancel(tx, id))
            return super().run(name, **bindings)

    def settle(tx: Transaction) -> Any:
        interrupted = Interrupted(tx.connection, tx.now_us)
        return settling.settle(interrupted, settlings(leases, Settlement.handed_back()))

    (settled,) = run(writers[0], settle)
    assert (settled.answer, settled.state) == (SettleAnswer.APPLIED, TaskState.CANCELLED)


def test_cancels_of_the_same_tasks_in_other_orders_do_not_wait_for_each_other(writers: list[Writer]) -> None:
    ids = [submitted(writers[0]) for _ in range(40)]
    orders = [ids, ids[::-1], ids[20:] + ids[:20], ids[::2] + ids[1::2]]
    with ThreadPoolExecutor(4) as pool:
        asked = [
            pool.submit(run, writer, lambda tx, order=order: cancel(tx, *order))
            for writer, order in zip(writers, orders, strict=True)
        ]
        answers = Counter(each.answer for future in asked for each in answer(future))
    assert answers == {CancelAnswer.CANCELLED: 40, CancelAnswer.ALREADY: 120}


def test_a_postponement_beside_a_claim_is_refused(writers: list[Writer], beside: Beside) -> None:
    id = submitted(writers[0])
    claim = writers[0].begin()
    writers[0].claim_in(claim, 1)
    postponed = beside.held_up(writers[1], lambda tx: cancelling.postpone(tx, "default", id, tx.now_us + 60_000_000))
    writers[0].commit(claim)
    assert answer(postponed) is False


def test_of_two_redrives_one_runs_the_task_again(writers: list[Writer], beside: Beside) -> None:
    id = failed(writers[0])
    first = writers[0].begin()
    assert redrive(first, id) == [TaskState.QUEUED]
    second = beside.held_up(writers[1], lambda tx: redrive(tx, id))
    writers[0].commit(first)
    (refused,) = answer(second)
    assert isinstance(refused, Conflict)
    assert refused.fields["state"] == TaskState.QUEUED


def test_a_redrive_beside_a_removal_finds_nothing(writers: list[Writer], beside: Beside) -> None:
    id = failed(writers[0])
    purge = writers[0].begin()
    assert redriving.purge(purge, "default", [id], "bob") == [True]
    second = beside.held_up(writers[1], lambda tx: redrive(tx, id))
    writers[0].commit(purge)
    assert isinstance(answer(second)[0], NotFound)


def test_a_removal_beside_a_redrive_leaves_the_task(writers: list[Writer], beside: Beside) -> None:
    id = failed(writers[0])
    first = writers[0].begin()
    redrive(first, id)
    purged = beside.held_up(writers[1], lambda tx: redriving.purge(tx, "default", [id], "bob"))
    discarded = beside.held_up(writers[2], lambda tx: redriving.discard(tx, "default", [id], "bob"))
    writers[0].commit(first)
    assert (answer(purged), answer(discarded)) == ([False], [False])
    assert [lease.hold.task_id for lease in writers[0].claim(5)] == [id]


def report(lease: Lease) -> Report:
    return Report(lease.hold, progress=Progress(1, 2, None, None), phase="executing")


def test_a_report_beside_a_settle_is_refused_and_leaves_nothing(writers: list[Writer], beside: Beside) -> None:
    submitted(writers[0])
    (lease,) = writers[0].claim(1)
    settle = writers[0].begin()
    settling.settle(settle, settlings([lease]))
    reported = beside.held_up(writers[1], lambda tx: reporting.report(tx, [report(lease)]))
    writers[0].commit(settle)
    assert isinstance(answer(reported)[0], LeaseLost)
    with writers[0].transaction() as tx:
        assert tx.connection.execute("SELECT count(*) FROM perdure_progress").fetchall() == [(0,)]  # type: ignore[attr-defined]


def test_two_reports_of_one_attempt_in_one_call_count_together(writers: list[Writer]) -> None:
    submitted(writers[0])
    (lease,) = writers[0].claim(1)
    later = Report(lease.hold, progress=Progress(2, None, None, None), checkpoint='{"at":2}')
    with writers[0].transaction() as tx:
        reporting.report(tx, [report(lease)._replace(checkpoint='{"at":1}'), later])
    with writers[0].transaction() as tx:
        row = tx.connection.execute("SELECT phase, done, total FROM perdure_progress").fetchall()  # type: ignore[attr-defined]
        kept = tx.connection.execute("SELECT value FROM perdure_checkpoints").fetchall()  # type: ignore[attr-defined]
    assert (row, kept) == ([("executing", 2, 2)], [('{"at":2}',)])


# Idempotency keys


def submit(tx: Transaction, writer: Writer, key: str, request: str = "h") -> Any:
    (task,) = writer.tasks(1, idempotency_key=key, request_hash=request)
    return submission.submit(tx, [task], writer.lanes)[0]


def test_of_many_submits_with_one_key_one_makes_a_task(writers: list[Writer]) -> None:
    def race(writer: Writer) -> list[Submitted]:
        return [run(writer, partial(submit, writer=writer, key=f"key {number}")) for number in range(30)]

    with ThreadPoolExecutor(4) as pool:
        answers = [each for part in pool.map(race, writers) for each in part]
    assert Counter(each.replayed for each in answers) == {False: 30, True: 90}
    assert len({each.id for each in answers}) == 30
    assert len(writers[0].claim(500)) == 30


def test_a_key_that_is_being_used_is_waited_for(writers: list[Writer], beside: Beside) -> None:
    for ending in ("commit", "roll back"):
        first = writers[0].begin()
        made = submit(first, writers[0], ending)
        again = beside.held_up(writers[1], partial(submit, writer=writers[1], key=ending))
        other = beside.held_up(writers[2], partial(submit, writer=writers[2], key=ending, request="other"))
        if ending == "commit":
            writers[0].commit(first)
            assert answer(again) == Submitted(made.id, TaskState.QUEUED, True)
            assert isinstance(answer(other), IdempotencyConflict)
        else:
            writers[0].session.roll_back()
            kinds = {type(answer(each)) for each in (again, other)}
            assert kinds == {Submitted, IdempotencyConflict}


def test_submits_of_the_same_keys_in_other_orders_make_each_task_once(writers: list[Writer]) -> None:
    keys = [f"key {number}" for number in range(40)]

    def race(writer: Writer, order: list[str]) -> list[Any]:
        tasks = [writer.tasks(1, idempotency_key=key, request_hash="h")[0] for key in order]
        return run(writer, lambda tx: submission.submit(tx, tasks, writer.lanes))

    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(race, writers[0], keys), pool.submit(race, writers[1], keys[::-1])]
        answers = [each for future in asked for each in answer(future)]
    assert Counter(each.replayed for each in answers) == {False: 40, True: 40}
    assert len(writers[0].claim(500)) == 40


# Documents


def put(tx: Transaction, document: str, expected: int | None) -> Any:
    (put,) = definitions.PUT.apply(tx, [definitions.Put("default", "queue", "mail", document, "bob", expected)])
    return put


def test_of_puts_over_one_version_one_wins(writers: list[Writer]) -> None:
    with ThreadPoolExecutor(4) as pool:
        asked = [
            pool.submit(run, writer, lambda tx, n=n: put(tx, f'{{"depth":{n}}}', 0)) for n, writer in enumerate(writers)
        ]
        answers = [answer(future) for future in asked]
    assert sum(isinstance(each, Conflict) for each in answers) == 3
    (won,) = {each.version for each in answers if not isinstance(each, Conflict)}
    assert {each.fields["version"] for each in answers if isinstance(each, Conflict)} == {won}


def test_unconditional_puts_at_once_all_count(writers: list[Writer]) -> None:
    def race(number: int) -> list[int]:
        return [
            run(writers[number], lambda tx, n=n: put(tx, f'{{"depth":{number * 100 + n}}}', None)).version
            for n in range(20)
        ]

    with ThreadPoolExecutor(4) as pool:
        versions = [version for part in pool.map(race, range(4)) for version in part]
    first = min(versions)
    assert sorted(versions) == list(range(first, first + 80))


def test_a_document_keeps_its_text(writers: list[Writer]) -> None:
    text = '{"depth": 5,  "paused":false,"a":1.0}'
    first = run(writers[0], lambda tx: put(tx, text, None))
    assert run(writers[0], lambda tx: put(tx, text, None)).version == first.version
    with writers[0].transaction() as tx:
        assert tx.run("definition_get", organization="default", type="queue", name="mail")[0][4] == text


def test_retention_leaves_what_is_being_run_again(writers: list[Writer]) -> None:
    ids = [failed(writers[0]) for _ in range(5)]
    open_redrive = writers[0].begin()
    redrive(open_redrive, ids[2])
    swept = run(writers[1], lambda tx: retaining.retain(tx, Retention(keep_us=1), 100))
    try:
        writers[0].commit(open_redrive)
    except RETRIED:
        writers[0].session.roll_back()
        run(writers[0], lambda tx: redrive(tx, ids[2]))
    assert swept.moved == 4
    assert [lease.hold.task_id for lease in writers[0].claim(5)] == [ids[2]]
