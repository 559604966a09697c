"""SQL lives in files: one statement each, with its purpose, named in the code that runs it."""

import ast
import re

from tidy.source_tree import MIGRATIONS, modules, statements, strings

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


def test_every_statement_begins_with_its_purpose():
    offences = [name for name, text in statements().items() if not re.match(r"-- \S", text)]
    offences += [path.name for path in MIGRATIONS.glob("*.sql") if not re.match(r"-- \S", path.read_text())]
    assert not offences, ", ".join(offences)


def test_every_file_is_one_statement():
    offences = [name for name, text in statements().items() if ";" in _code(text).rstrip().removesuffix(";")]
    assert not offences, ", ".join(offences)


def _code(text: str) -> str:
    return re.sub(r"'[^']*'|--.*", "", text)


def test_every_statement_is_used_and_every_used_one_exists():
    store = [*modules("src/perdure/store/sqlite"), *modules("src/perdure/store/relational")]
    mentioned = {text for module in store for _, text in strings(module)}
    patterns = [_pattern(node) for module in store for node in ast.walk(module.tree) if isinstance(node, ast.JoinedStr)]
    unused = sorted(
        name for name in statements().keys() - mentioned if not any(each.fullmatch(name) for each in patterns)
    )
    assert not unused, f"nothing runs {', '.join(unused)}"
    missing = sorted({name for module in store for name in _run_by(module.tree)} - statements().keys())
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


def test_migrations_are_numbered_without_gaps():
    names = sorted(path.name for path in MIGRATIONS.glob("*.sql"))
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))
    assert all(re.fullmatch(r"\d{4}_[a-z_]+\.sql", name) for name in names)


def test_no_table_is_keyed_without_its_organization_or_its_task():
    text = "\n".join(path.read_text() for path in sorted(MIGRATIONS.glob("*.sql")))
    without = {"perdure_meta", "perdure_counts"}
    for name, body in re.findall(r"CREATE TABLE (\w+) \((.*?)\n\)", text, re.DOTALL):
        if name not in without:
            assert re.search(r"\borganizations?\b|\bREFERENCES perdure_(?:tasks|lanes)\b", body), name


def test_every_table_and_index_carries_the_projects_name_for_it_may_live_in_a_users_database():
    text = "\n".join(path.read_text() for path in sorted(MIGRATIONS.glob("*.sql")))
    names = re.findall(r"CREATE (?:UNIQUE )?(?:TABLE|INDEX) (\w+)", text)
    assert [name for name in names if not name.startswith("perdure_")] == []
