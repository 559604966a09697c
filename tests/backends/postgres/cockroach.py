"""What CockroachDB does not do as PostgreSQL does, as rules about parse trees.

No server of it was to be had when these were written: they stand on what its makers document, named at each rule. The
parser is PostgreSQL's own.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import postgast

WRITES = ("InsertStmt", "UpdateStmt", "DeleteStmt", "MergeStmt")
DEFAULT_NULLS = 1
NOT_NULL, PRIMARY = "CONSTR_NOTNULL", "CONSTR_PRIMARY"
SYSTEM_COLUMNS = {"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"}
FOREIGN_FUNCTIONS = {
    "pg_notify",
    "pg_postmaster_start_time",
    "pg_current_wal_lsn",
    "pg_wal_lsn_diff",
    "pg_database_size",
    "pg_total_relation_size",
    "age",
}
"""Functions about a server's log, processes and files, of which there is none."""
KNOWN_SETTINGS = {"lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout", "enable_seqscan"}
"""Settings of the session that exist there."""

NUMBERED = {"place", "position", "turn"}
"""What the statements call the number that a row of a list has: `WITH ORDINALITY`, or counted by a window."""

Tree = list[tuple[str, Any]]
Schema = dict[str, dict[str, bool]]
"""By table and column, whether it may be NULL."""


class Rule(NamedTuple):
    """Something that a statement may not have."""

    name: str
    source: str
    """Where it is said, by its makers."""
    find: Callable[[Tree, Schema], Iterator[str]]
    """What breaks it in a tree, given the schema."""


def _written_twice(tree: Tree, schema: Schema) -> Iterator[str]:
    written = Counter(node.relation.relname for kind, node in tree if kind in WRITES)
    yield from (f"writes {table} {times} times" for table, times in written.items() if times > 1)


def _order_of_nulls(tree: Tree, schema: Schema) -> Iterator[str]:
    for kind, node in tree:
        if kind == "SortBy" and node.sortby_nulls == DEFAULT_NULLS:
            key = _column(node.node)
            if key not in NUMBERED and not _is_never_null(key, tree, schema):
                yield f"orders by {key or 'an expression'} without NULLS FIRST or LAST"


def _is_never_null(column: str | None, tree: Tree, schema: Schema) -> bool:
    """Whether every table of the statement that has this column keeps NULL out of it, and there is one."""
    tables = {node.relname for kind, node in tree if kind == "RangeVar"} & schema.keys()
    may_be = [schema[table][column] for table in tables if column in schema[table]] if column else []
    return bool(may_be) and not any(may_be)


def _listening(tree: Tree, schema: Schema) -> Iterator[str]:
    yield from (kind for kind, _ in tree if kind in ("ListenStmt", "NotifyStmt", "UnlistenStmt"))


def _advisory_locks(tree: Tree, schema: Schema) -> Iterator[str]:
    yield from (name for name in _functions(tree) if name.startswith(("pg_advisory", "pg_try_advisory")))


def _foreign_functions(tree: Tree, schema: Schema) -> Iterator[str]:
    yield from (name for name in _functions(tree) if name in FOREIGN_FUNCTIONS)


def _settings(tree: Tree, schema: Schema) -> Iterator[str]:
    for kind, node in tree:
        if kind == "FuncCall" and node.funcname[-1].string.sval == "set_config":
            name = node.args[0].a_const.sval.sval
            if name not in KNOWN_SETTINGS:
                yield f"sets {name}"


def _system_columns(tree: Tree, schema: Schema) -> Iterator[str]:
    for kind, node in tree:
        if kind == "ColumnRef" and node.fields[-1].string.sval in SYSTEM_COLUMNS:
            yield f"reads {node.fields[-1].string.sval}"


def _tables_locked(tree: Tree, schema: Schema) -> Iterator[str]:
    yield from (kind for kind, _ in tree if kind in ("LockStmt", "MergeStmt"))


_DIFFERENCES = "https://www.cockroachlabs.com/docs/stable/postgresql-compatibility"
RULES = (
    Rule("a table is written once", "https://github.com/cockroachdb/cockroach/pull/70976", _written_twice),
    Rule("the order of NULL is written", "https://www.cockroachlabs.com/docs/stable/order-by", _order_of_nulls),
    Rule("nobody listens", "https://github.com/cockroachdb/cockroach/issues/41522", _listening),
    Rule("no advisory locks", _DIFFERENCES, _advisory_locks),
    Rule("no functions of the server's own", "https://www.cockroachlabs.com/docs/stable/functions", _foreign_functions),
    Rule("no foreign settings", "https://www.cockroachlabs.com/docs/stable/session-variables", _settings),
    Rule("no system columns", _DIFFERENCES, _system_columns),
    Rule("no table locks and no MERGE", _DIFFERENCES, _tables_locked),
)


def broken(text: str, schema: Schema) -> list[tuple[str, str]]:
    """The rules that a statement breaks, and by what."""
    tree = _walk(text)
    return [(rule.name, found) for rule in RULES for found in rule.find(tree, schema)]


def schema_of(text: str) -> Schema:
    """The tables that are made by the steps of a schema."""
    return {node.relation.relname: _columns(node) for kind, node in _walk(text) if kind == "CreateStmt"}


def _columns(table: Any) -> dict[str, bool]:
    constraints = [each.constraint for each in table.table_elts if each.HasField("constraint")]
    keys = {key.string.sval for each in constraints if _name(each) == PRIMARY for key in each.keys}
    may_be_null = {}
    for each in table.table_elts:
        if each.HasField("column_def"):
            own = {_name(constraint.constraint) for constraint in each.column_def.constraints}
            may_be_null[each.column_def.colname] = not own & {NOT_NULL, PRIMARY} and each.column_def.colname not in keys
    return may_be_null


def _name(constraint: Any) -> str:
    return str(postgast.pg_query_pb2.ConstrType.Name(constraint.contype))


def _walk(text: str) -> Tree:
    return [(type(node).__name__, node) for _, node in postgast.walk(postgast.parse(text))]


def _functions(tree: Tree) -> Iterator[str]:
    for kind, node in tree:
        if kind == "FuncCall":
            yield node.funcname[-1].string.sval


def _column(node: Any) -> str | None:
    if not node.HasField("column_ref") or not node.column_ref.fields[-1].HasField("string"):
        return None
    name: str = node.column_ref.fields[-1].string.sval
    return name
