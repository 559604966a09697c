"""The statements, held against what CockroachDB does not do. No server of it was to be had: these are its documents."""

from pathlib import Path

import pytest

from backends.postgres.cockroach import RULES, broken, schema_of
from perdure.store.postgres.schema import known_steps
from perdure.store.postgres.statements import STATEMENTS

KNOWN = Path(__file__).with_name("cockroach_lacks.txt")
"""What the statements still break: a profile for CockroachDB has to do otherwise there. The list only shrinks."""

SCHEMA = schema_of("\n".join(step.sql for step in known_steps()))

EXAMPLES = {
    "a table is written once": (
        "WITH gone AS (DELETE FROM perdure_live WHERE n = 1) UPDATE perdure_live SET seq = 1 WHERE n = 2",
        "WITH gone AS (DELETE FROM perdure_live WHERE n = 1) UPDATE perdure_ends SET due_us = 1 WHERE n = 2",
    ),
    "the order of NULL is written": (
        "SELECT n FROM perdure_live ORDER BY seq",
        "SELECT n FROM perdure_live ORDER BY seq NULLS LAST, n",
    ),
    "nobody listens": ("LISTEN perdure", "SELECT 1"),
    "no advisory locks": ("SELECT pg_try_advisory_xact_lock(1)", "SELECT 1 FOR UPDATE"),
    "no functions of the server's own": ("SELECT pg_notify('a', 'b')", "SELECT count(*) FROM perdure_live"),
    "no foreign settings": (
        "SELECT set_config('jit', 'off', true)",
        "SELECT set_config('lock_timeout', '1s', true)",
    ),
    "no system columns": ("SELECT ctid FROM perdure_live", "SELECT n FROM perdure_live"),
    "no table locks and no MERGE": ("LOCK TABLE perdure_live", "SELECT n FROM perdure_live FOR UPDATE"),
}
"""For each rule, a statement that breaks it and one that does not."""


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_each_rule_finds_what_breaks_it_and_nothing_else(rule) -> None:
    breaks, keeps = EXAMPLES[rule.name]
    assert [name for name, _ in broken(breaks, SCHEMA)] == [rule.name]
    assert broken(keeps, SCHEMA) == []


def test_no_statement_breaks_what_is_not_known_to_be_broken() -> None:
    found = {
        f"{name}: {what}"
        for name, statement in STATEMENTS.items()
        if statement.clears is None
        for _, what in broken(statement.numbered.decode(), SCHEMA)
    }
    lines = KNOWN.read_text(encoding="utf-8").splitlines()
    known = {line for line in lines if line.partition(":")[0] in STATEMENTS}
    assert found - known == set(), "CockroachDB does not do that; say it otherwise (NULLS LAST is written, for one)"
    assert known - found == set(), f"take these from {KNOWN.name}: they are mended"
