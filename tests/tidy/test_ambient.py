"""Time, identity and chance come from `ambient.py` and nowhere else."""

import ast
import re

import pytest

from tidy.source_tree import SQL_STORES, Module, imported, migrations, modules, statements

AMBIENT = "src/perdure/ambient.py"
SOURCES = ("random", "secrets", "time", "uuid")
CALLS = {
    ("datetime", "now"),
    ("datetime", "today"),
    ("datetime", "utcnow"),
    ("date", "today"),
    ("os", "urandom"),
    ("socket", "gethostname"),
}
SQL_SOURCES = re.compile(
    r"\b(random|randomblob|unixepoch|julianday|strftime|now|clock_timestamp|statement_timestamp|transaction_timestamp"
    r"|gen_random_uuid|pg_postmaster_start_time)\s*\(|\bcurrent_(time|date|timestamp)\b|'now'",
    re.IGNORECASE,
)


def test_clock_and_chance_are_only_in_ambient():
    offences = [offence for module in modules() if module.place != AMBIENT for offence in _offences(module)]
    assert not offences, "take a Clock, Ids or Chance instead:\n" + "\n".join(offences)


def _offences(module: Module) -> list[str]:
    found = [
        f"{module.place}:{line} imports {name}" for line, name in imported(module) if name.split(".")[0] in SOURCES
    ]
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            name = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
            if (name, node.func.attr) in CALLS:
                found.append(f"{module.place}:{node.lineno} calls {name}.{node.func.attr}")
    return found


CLOCKS = {
    *("transaction_durability", "submit_lone", "server_facts", "caller_place", "health_snapshots"),
    *("gate_find", "gate_open"),
}
"""Statements by which a server's own clock is read: once for each transaction, again once it has waited for gates, and
to show how the server is.
"""


@pytest.mark.parametrize("store", SQL_STORES)
def test_no_statement_asks_the_database_for_time_or_chance(store: str):
    files = statements(store) | migrations(store)
    asking = {name for name, text in files.items() if SQL_SOURCES.search(_without_comments(text))}
    assert not asking - CLOCKS, "bind the transaction's now instead: " + ", ".join(sorted(asking - CLOCKS))


def _without_comments(text: str) -> str:
    return re.sub(r"--.*", "", text)
