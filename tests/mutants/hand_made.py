"""Faults that a person would make, each put into the running store by a few changed words."""

from collections.abc import Callable
from typing import Any, NamedTuple

from perdure.store.sqlite import commits, statements
from perdure.store.sqlite.transaction import Transaction


class HandMade(NamedTuple):
    """A fault, how it is put in, and how it is taken out again by what `put` returns."""

    name: str
    put: Callable[[], Callable[[], None]]
    tests: tuple[str, ...] = ()
    """Files of tests that are to notice it, where those of the first rules do not, or only after many others."""
    life: int = 0
    """A simulated life that noticed it when it was last looked for: the first to be tried."""


def replace(statement: str, sql: str) -> Callable[[], None]:
    """Let the store run other SQL under this name; call what is returned to undo it."""
    before = statements.STATEMENTS[statement]
    _put(statement, sql)
    return lambda: _put(statement, before)


def _put(statement: str, sql: str) -> None:
    known: Any = statements.STATEMENTS
    known[statement] = sql
    statements.for_rows.cache_clear()


def _changed(*changes: tuple[str, str, str]) -> Callable[[], Callable[[], None]]:
    """A fault that writes other words into statements: (statement, words, instead)."""

    def put() -> Callable[[], None]:
        undo = []
        for statement, words, instead in changes:
            sql = statements.STATEMENTS[statement]
            if words not in sql:
                raise LookupError(f"{statement}.sql has no {words!r} any more: change the mutant, too")
            undo.append(replace(statement, sql.replace(words, instead)))
        return lambda: [each() for each in reversed(undo)] and None

    return put


def _early_answer() -> Callable[[], None]:
    """Every seventh transaction is answered and then forgotten."""
    transact = commits.Commits._transact
    count = 0

    def transact_sometimes(self: Any, groups: Any) -> None:
        nonlocal count
        count += 1
        if count % 7:
            transact(self, groups)
            return
        connection = self.connected()
        connection.execute(statements.STATEMENTS["transaction_begin"])
        tx = Transaction(connection, self._clock.now_us())
        answers = [self._apply(tx, group) for group in groups]
        connection.execute(statements.STATEMENTS["transaction_rollback"])
        self._conclude(tx, groups, answers, None)

    at_once = commits.Commits.flush_at_once
    commits.Commits._transact = transact_sometimes  # type: ignore[method-assign]
    commits.Commits.flush_at_once = lambda self, call, along=None: False  # type: ignore[method-assign]

    def undo() -> None:
        commits.Commits._transact = transact  # type: ignore[method-assign]
        commits.Commits.flush_at_once = at_once  # type: ignore[method-assign]

    return undo


def _no_sync() -> Callable[[], None]:
    """What is to be written through to the disk is not."""
    before = dict(commits.SYNCHRONOUS)
    commits.SYNCHRONOUS.update(dict.fromkeys(before, before["OFF"]))
    return lambda: commits.SYNCHRONOUS.update(before)


STALE = ("tests/conformance/test_stale_attempts.py",)
_TOKEN = "live.token = item.value ->> 2 AND live.lease_ends_us > :now"

HAND_MADE: tuple[HandMade, ...] = (
    HandMade(
        "no fence: any attempt of a task may settle it",
        _changed(
            ("settle_stage", "WHERE live.attempt_id = item.value ->> 1", "WHERE 1"),
            ("settle_stage", _TOKEN, "live.lease_ends_us > :now"),
        ),
        STALE,
        life=29,
    ),
    HandMade(
        "no token: who knows the attempt may settle it",
        _changed(("settle_stage", _TOKEN, "live.lease_ends_us > :now")),
        STALE,
    ),
    HandMade("a lease that ran out may be renewed", _changed(("renew", "live.lease_ends_us > :now AND ", ""))),
    HandMade(
        "a lease that ran out may settle",
        _changed(("settle_stage", _TOKEN, "live.token = item.value ->> 2")),
        life=17,
    ),
    HandMade(
        "the duty ends attempts without looking whether their leases are over",
        _changed(
            ("settle_stage", "live.lease_ends_us <= :now", "1"),
            ("doubtful_find", "live.lease_ends_us <= :now AND", "1 AND"),
        ),
    ),
    HandMade(
        "a task is promoted when it is due or waits for nothing",
        _changed(
            (
                "due_stage",
                "waits = 0 AND gate IS NULL AND due_us <= :now",
                "(waits = 0 OR due_us <= :now) AND gate IS NULL",
            ),
            ("due_stage", "INDEXED BY perdure_live_due", ""),
            ("joining_apply", "CASE WHEN live.due_us <= :due", "CASE WHEN 1"),
        ),
    ),
    HandMade(
        "parents that end in one flush count once",
        _changed(("children_count_down", "live.waits - touched.good - touched.bad", "live.waits - 1")),
    ),
    HandMade(
        "a result is taken while the task is being cancelled",
        _changed(
            (
                "settle_stage",
                "live.state IN ('leased', 'running')",
                "live.state IN ('leased', 'running', 'cancelling')",
            ),
        ),
        life=354,
    ),
    HandMade("the fence does not grow", _changed(("claim_lease", "max(live.fence + 1, :now)", "1"))),
    HandMade(
        "a start at a rate keeps no slot",
        _changed(("slot_start", "free_us = :now + (SELECT gates.per_us", "free_us = :now + 0 * (SELECT gates.per_us")),
        ("tests/conformance/test_gates.py",),
    ),
    HandMade(
        "the others of an order do not wait for a retry",
        _changed(("slot_yield", "WHERE leaving.value ->> 1 OR gates.sort IN ('concurrency', 'fair')", "")),
        ("tests/conformance/test_gates.py",),
        life=12,
    ),
    HandMade(
        "a limit of a queue counts only what is being cancelled",
        _changed(("flow_held", "IN ('leased', 'running', 'cancelling')", "IN ('cancelling')")),
        ("tests/conformance/test_queue_limits.py",),
        life=40,
    ),
    HandMade(
        "a unique key is free whoever holds it",
        _changed(("unique_standing", "coalesce(live.state, ends.state, keys.left_state)", "NULL")),
        ("tests/conformance/test_unique.py",),
        life=10,
    ),
    HandMade(
        "a growth that is repeated adds all of it again",
        _changed(("growth_names", "name IN (SELECT value FROM json_each(:batch))", "name IN (SELECT 1)")),
        ("tests/conformance/test_growth.py",),
    ),
    HandMade("the answer comes before the commit", _early_answer),
    HandMade("nothing is written through to the disk", _no_sync),
)
