"""What CockroachDB does not do as PostgreSQL does, as rules about parse trees.

They were never run on a CockroachDB server: they stand on what its makers document, named at each rule. The parser
is PostgreSQL's own.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import postgast

WRITES = ("InsertStmt", "UpdateStmt", "DeleteStmt", "MergeStmt")
DEFAULT_NULLS, AND, OPERATOR, IS_NOT_NULL = 1, 1, 1, 2
TIED = {("state", "queued"): "seq"}
"""A column that is not NULL where another has a value, by a CHECK of the schema."""
NOT_NULL, PRIMARY = "CONSTR_NOTNULL", "CONSTR_PRIMARY"
KNOWN_FUNCTIONS = {
    *("abs", "array_agg", "bool_or", "clock_timestamp", "convert_from", "convert_to", "count", "current_database"),
    *("decode", "encode", "extract", "generate_series", "length", "max", "min", "nextval", "octet_length"),
    *("row_number", "sum"),
    *("json_agg", "json_array_elements", "json_array_elements_text", "json_build_array", "json_build_object"),
    *("json_object_agg", "json_strip_nulls", "jsonb_agg", "jsonb_array_elements", "jsonb_array_elements_text"),
    *("jsonb_array_length", "jsonb_build_array", "jsonb_build_object", "jsonb_to_recordset", "to_jsonb"),
    *("pg_backend_pid", "set_config", "to_regclass", "unnest"),
}
"""Functions that its documents list. Others are not to be used before they have been looked up there."""
KNOWN_KINDS = {"bool", "bytea", "int4", "int8", "json", "jsonb", "oid", "text"}
"""Types of values that it has under these names."""
SYSTEM_COLUMNS = {"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"}
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
    for orders, guards in _orders(tree):
        for order in orders:
            node = order.sort_by
            key = _column(node.node)
            sure = key in NUMBERED or key in guards or _is_never_null(key, tree, schema)
            if node.sortby_nulls == DEFAULT_NULLS and not sure:
                yield f"orders by {key or 'an expression'} without NULLS FIRST or LAST"


def _orders(tree: Tree) -> Iterator[tuple[Any, set[str]]]:
    """What each query, aggregate and window orders by, and the columns of which the query's WHERE lets no NULL pass."""
    for kind, node in tree:
        if kind == "SelectStmt":
            yield node.sort_clause, _guarded(node.where_clause)
        elif kind == "FuncCall":
            yield node.agg_order, set()
        elif kind == "WindowDef":
            yield node.order_clause, set()


def _guarded(where: Any) -> set[str]:
    """The columns that a condition compares, in parts that all have to hold: with NULL it would not."""
    if where.HasField("bool_expr") and where.bool_expr.boolop == AND:
        return {column for part in where.bool_expr.args for column in _guarded(part)}
    if where.HasField("null_test") and where.null_test.nulltesttype == IS_NOT_NULL:
        return {column for column in [_column(where.null_test.arg)] if column}
    if where.HasField("a_expr") and where.a_expr.kind == OPERATOR:
        expression = where.a_expr
        columns = {column for column in (_column(expression.lexpr), _column(expression.rexpr)) if column}
        tied = TIED.get((_column(expression.lexpr) or "", expression.rexpr.a_const.sval.sval))
        return columns | ({tied} if tied else set())
    return set()


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
    yield from (name for name in _functions(tree) if name not in KNOWN_FUNCTIONS and "advisory" not in name)


def _foreign_kinds(tree: Tree, schema: Schema) -> Iterator[str]:
    yield from (
        f"a value of type {node.names[-1].string.sval}"
        for kind, node in tree
        if kind == "TypeName" and node.names[-1].string.sval not in KNOWN_KINDS
    )


def _storage(tree: Tree, schema: Schema) -> Iterator[str]:
    for kind, node in tree:
        if kind in ("CreateStmt", "IndexStmt"):
            yield from (f"sets {option.def_elem.defname}" for option in node.options)


def _collations(tree: Tree, schema: Schema) -> Iterator[str]:
    yield from ("a collation" for kind, _ in tree if kind == "CollateClause")


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
    Rule(
        "functions that it has", "https://www.cockroachlabs.com/docs/stable/functions-and-operators", _foreign_functions
    ),
    Rule("types that it has", "https://www.cockroachlabs.com/docs/stable/data-types", _foreign_kinds),
    Rule("no parameters of storage", "https://www.cockroachlabs.com/docs/stable/with-storage-parameter", _storage),
    Rule("text is compared by bytes", "https://www.cockroachlabs.com/docs/stable/collate", _collations),
    Rule("no foreign settings", "https://www.cockroachlabs.com/docs/stable/session-variables", _settings),
    Rule("no system columns", _DIFFERENCES, _system_columns),
    Rule("no table locks and no MERGE", _DIFFERENCES, _tables_locked),
)


def broken(text: str, schema: Schema) -> list[tuple[str, str]]:
    """The rules that statements break, and by what."""
    trees = [_nodes(statement) for statement in postgast.parse(text).stmts]
    return [(rule.name, found) for tree in trees for rule in RULES for found in rule.find(tree, schema)]


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
    return _nodes(postgast.parse(text))


def _nodes(tree: Any) -> Tree:
    return [(type(node).__name__, node) for _, node in postgast.walk(tree)]


def _functions(tree: Tree) -> Iterator[str]:
    for kind, node in tree:
        if kind == "FuncCall":
            yield node.funcname[-1].string.sval


def _column(node: Any) -> str | None:
    if not node.HasField("column_ref") or not node.column_ref.fields[-1].HasField("string"):
        return None
    name: str = node.column_ref.fields[-1].string.sval
    return name
