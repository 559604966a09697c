"""Every predicate of a statement is found, and what remains is the same statement with one condition less."""

import pytest

from mutants.predicates import NUMBERS, Words, mutants


def told(sql: str, words: Words = NUMBERS) -> dict[str, str]:
    """By predicate, the statement without it, in one line."""
    return {each.predicate: " ".join(each.sql.split()) for each in mutants("statement", sql, words)}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "DELETE FROM t WHERE a = 1 AND b",
            {"a = 1": "DELETE FROM t WHERE 1 AND b", "b": "DELETE FROM t WHERE a = 1 AND 1"},
        ),
        (
            "SELECT 1 FROM t WHERE (a OR b)",
            {
                "(a OR b)": "SELECT 1 FROM t WHERE 1",
                "a (arm)": "SELECT 1 FROM t WHERE ( 0 OR b)",
                "b (arm)": "SELECT 1 FROM t WHERE (a OR 0 )",
            },
        ),
        ("SELECT 1 FROM t WHERE a BETWEEN 1 AND 2", {"a BETWEEN 1 AND 2": "SELECT 1 FROM t WHERE 1"}),
        ("SELECT 1 FROM t WHERE true -- no condition\n", {}),
        (
            "INSERT INTO t SELECT 1 ON CONFLICT DO UPDATE SET a = 1 WHERE t.b",
            {"t.b": "INSERT INTO t SELECT 1 ON CONFLICT DO UPDATE SET a = 1 WHERE 1"},
        ),
    ],
)
def test_terms_and_arms_are_dropped_one_by_one(sql: str, expected: dict[str, str]) -> None:
    assert told(sql) == expected


@pytest.mark.parametrize(
    ("sql", "predicate"),
    [
        (
            "SELECT 1 FROM t WHERE (SELECT a FROM u) IS DISTINCT FROM 'x' ORDER BY b",
            "(SELECT a FROM u) IS DISTINCT FROM 'x'",
        ),
        ("SELECT n FROM t WHERE b FOR UPDATE OF t SKIP LOCKED", "b"),
        ("SELECT count(*) FILTER (WHERE b) FROM t", "b"),
        ("SELECT DISTINCT ON (n) * FROM t WHERE b", "b"),
    ],
)
def test_words_of_postgresql_end_no_condition_and_begin_none(sql: str, predicate: str) -> None:
    ((found, without),) = told(sql, Words("true", "false")).items()
    assert found == predicate
    assert without.replace(" )", ")") == sql.replace(predicate, "true")


def test_the_same_predicate_in_two_places_has_two_names() -> None:
    assert list(told("SELECT 1 FROM t JOIN u ON a WHERE a")) == ["a", "a (2)"]
