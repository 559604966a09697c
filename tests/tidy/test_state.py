"""Nothing is kept at module level that changes."""

import ast

from tidy.source_tree import Module, modules

MUTATORS = {"add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popleft", "remove"} | {
    "setdefault",
    "update",
}
CONTAINERS = {"Counter", "OrderedDict", "WeakKeyDictionary", "WeakSet", "WeakValueDictionary", "defaultdict", "deque"}
CONTAINERS |= {"bytearray", "dict", "list", "set"}


def test_no_module_keeps_state():
    offences = [offence for module in modules() for offence in _offences(module)]
    assert not offences, "\n".join(offences)


def _offences(module: Module) -> list[str]:
    containers = _containers(module.tree)
    found = [
        f"{module.place}:{line} {name} is mutable and not a constant"
        for name, line in containers.items()
        if name.lstrip("_").islower() and not name.startswith("__")
    ]
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Global):
            found.append(f"{module.place}:{node.lineno} global {', '.join(node.names)}")
        name = _mutated(node)
        if name in containers:
            found.append(f"{module.place}:{node.lineno} changes {name}")
    return found


def _containers(tree: ast.Module) -> dict[str, int]:
    found = {}
    for node in tree.body:
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        if value is not None and _is_mutable(value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id: node.lineno for target in targets if isinstance(target, ast.Name)}
    return found


def _is_mutable(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id in CONTAINERS
    return isinstance(value, ast.Dict | ast.List | ast.Set | ast.DictComp | ast.ListComp | ast.SetComp)


def _mutated(node: ast.AST) -> str | None:
    """The name of the container that the node changes, if it does."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
        owner = node.func.value
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
        owner = node.value
    elif isinstance(node, ast.AugAssign):
        owner = node.target
    else:
        return None
    return owner.id if isinstance(owner, ast.Name) else None
