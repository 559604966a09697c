"""SQL lives in files: one statement each, with its purpose, named in the code that runs it."""

import ast
import re

import pytest

from tidy.source_tree import SQL_STORES, migrations, modules, statements, strings

each_store = pytest.mark.parametrize("store", SQL_STORES)

SQL_IN_STRING = re.compile(
    r"\b(SELECT\s+[\w*(:'\"]|INSERT\s+(OR\s+\w+\s+)?INTO\b|UPDATE\s+\w+\s+SET\b|DELETE\s+FROM\b|REPLACE\s+INTO\b"
    r"|(CREATE|DROP|ALTER)\s+(TEMP\s+|UNIQUE\s+|VIRTUAL\s+)?(TABLE|INDEX|VIEW|TRIGGER)\b|WITH\s+\w+\s+AS\s*\()",
)
RUNNERS = {"run", "value", "document"}


def test_no_sql_in_python_strings():
    offences = [
        f"{module.place}:{line}" for module in modules() for line, text in strings(module) if SQL_IN_STRING.search(text)
    ]
    assert not offences, "put it into a .sql file:\n" + "\n".join(offences)


@each_store
def test_every_statement_begins_with_its_purpose(store: str):
    files = statements(store) | migrations(store)
    offences = [name for name, text in files.items() if not re.match(r"-- \S", text)]
    assert not offences, ", ".join(offences)


@each_store
def test_every_file_is_one_statement(store: str):
    offences = [name for name, text in statements(store).items() if ";" in _code(text).rstrip().removesuffix(";")]
    assert not offences, ", ".join(offences)


def _code(text: str) -> str:
    return re.sub(r"'[^']*'|--.*", "", text)


@each_store
def test_every_statement_is_used_and_every_used_one_exists(store: str):
    own, shared = modules(f"src/perdure/store/{store}"), modules("src/perdure/store/relational")
    every = [*own, *shared]
    mentioned = {text for module in every for _, text in strings(module)}
    patterns = [_pattern(node) for module in every for node in ast.walk(module.tree) if isinstance(node, ast.JoinedStr)]
    unused = sorted(
        name for name in statements(store).keys() - mentioned if not any(each.fullmatch(name) for each in patterns)
    )
    assert not unused, f"nothing runs {', '.join(unused)}"
    missing = sorted({name for module in every for name in _run_by(module.tree)} - statements(store).keys())
    assert not missing, f"there is no file for {', '.join(missing)}"


def _pattern(text: ast.JoinedStr) -> re.Pattern[str]:
    """What an f-string with a fixed beginning may come to: `f"remove_{table}"` names all of that family."""
    parts = [re.escape(each.value) if isinstance(each, ast.Constant) else r"\w+" for each in text.values]
    return re.compile("".join(parts) if re.match(r"[a-z]+_", parts[0]) else "(?!)")


def _run_by(tree: ast.Module) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in RUNNERS
            and node.args
        ):
            names.add(node.args[0])
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "STATEMENTS":
            names.add(node.slice)
    return {each.value for each in names if isinstance(each, ast.Constant) and isinstance(each.value, str)}


@each_store
def test_migrations_are_numbered_without_gaps(store: str):
    names = sorted(migrations(store))
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))
    assert all(re.fullmatch(r"\d{4}_[a-z_]+\.sql", name) for name in names)


OWNED = re.compile(r"\borganizations?\b|\bREFERENCES perdure_(?:tasks|lanes|gates)\b|\b(?:n|parent|lane) bigint\b")
"""A column by which a row belongs to an organization, or to a task or a lane that does."""


@each_store
def test_no_table_is_keyed_without_its_organization_or_its_task(store: str):
    text = "\n".join(migrations(store).values())
    without = {"perdure_meta", "perdure_counts"}
    for name, body in re.findall(r"CREATE TABLE (\w+) \((.*?)\n\)", text, re.DOTALL):
        if name not in without:
            assert OWNED.search(body), name


@each_store
def test_every_table_and_index_carries_the_projects_name_for_it_may_live_in_a_users_database(store: str):
    text = "\n".join(migrations(store).values())
    names = re.findall(r"CREATE (?:UNIQUE )?(?:TABLE|INDEX|SEQUENCE) (\w+)", text)
    assert [name for name in names if not name.startswith("perdure_")] == []
