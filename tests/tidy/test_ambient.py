"""Time, identity and chance come from `ambient.py` and nowhere else."""

import ast
import re

from tidy.source_tree import MIGRATIONS, Module, imported, modules, statements

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
    r"\b(random|randomblob|unixepoch|julianday|strftime)\s*\(|\bcurrent_(time|date|timestamp)\b|'now'", re.IGNORECASE
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


def test_no_statement_asks_the_database_for_time_or_chance():
    offences = [name for name, text in statements().items() if SQL_SOURCES.search(_without_comments(text))]
    offences += [
        path.name for path in MIGRATIONS.glob("*.sql") if SQL_SOURCES.search(_without_comments(path.read_text()))
    ]
    assert not offences, "bind :now instead: " + ", ".join(offences)


def _without_comments(text: str) -> str:
    return re.sub(r"--.*", "", text)
