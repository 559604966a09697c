"""Everything public says what it is."""

import ast
from collections.abc import Iterator

from tidy.source_tree import Module, modules

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def test_public_names_have_docstrings():
    offences = [
        f"{module.place}:{getattr(node, 'lineno', 1)} {name}"
        for module in modules()
        for name, node in _public(module)
        if not ast.get_docstring(node)
    ]
    assert not offences, "\n".join(offences)


def _public(module: Module) -> Iterator[tuple[str, ast.Module | Definition]]:
    if module.text.strip():
        yield "module", module.tree
    for node in module.tree.body:
        if isinstance(node, Definition) and not node.name.startswith("_"):
            yield node.name, node
            if isinstance(node, ast.ClassDef):
                yield from _members(node)


def _members(cls: ast.ClassDef) -> Iterator[tuple[str, Definition]]:
    """What is public in a class and is not described elsewhere: a protocol's one-liners are told by their operation's
    file, an implementation by its protocol.
    """
    for node in cls.body:
        if not isinstance(node, Definition) or node.name.startswith("_") or _is_stub(node):
            continue
        if node.name in _documented_methods() and not ast.get_docstring(node):
            continue
        yield f"{cls.name}.{node.name}", node


def _is_stub(node: Definition) -> bool:
    body = node.body[0]
    return isinstance(body, ast.Expr) and isinstance(body.value, ast.Constant) and body.value.value is ...


def _documented_methods() -> set[str]:
    return {
        node.name
        for module in modules()
        for cls in module.tree.body
        if isinstance(cls, ast.ClassDef) and any(isinstance(b, ast.Name) and b.id == "Protocol" for b in cls.bases)
        for node in cls.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (ast.get_docstring(node) or _is_stub(node))
    }
