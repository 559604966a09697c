"""Small files, small functions. The list of exceptions can only shrink."""

import ast
from collections.abc import Iterator

from tidy.source_tree import ROOT, Module, modules, python_folders

FILE_SOFT_LINES, FILE_HARD_LINES = 400, 500
FUNCTION_SOFT_LINES, FUNCTION_HARD_LINES = 40, 70

LIST = ROOT / "tests" / "tidy" / "oversize.txt"
LIST_LONGEST = 2
"""Lower this when the list has become shorter; never raise it."""


def test_no_file_and_no_function_is_over_the_hard_limit():
    offences = [f"{place}: {lines} lines" for place, lines in _files() if lines > FILE_HARD_LINES]
    offences += [f"{place}: {lines} lines" for place, lines in _functions("src") if lines > FUNCTION_HARD_LINES]
    assert not offences, "split them:\n" + "\n".join(offences)


def test_what_is_over_the_soft_limit_is_in_the_list_of_exceptions():
    offences = sorted(_over_soft() - _listed())
    assert not offences, "split them (the list in oversize.txt only shrinks):\n" + "\n".join(offences)


def test_the_list_of_exceptions_only_shrinks():
    done = sorted(_listed() - _over_soft())
    assert not done, "these are small now, remove them from oversize.txt:\n" + "\n".join(done)
    assert len(_listed()) <= LIST_LONGEST


def _listed() -> set[str]:
    lines = LIST.read_text(encoding="utf-8").splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def _over_soft() -> set[str]:
    files = {place for place, lines in _files() if lines > FILE_SOFT_LINES}
    return files | {place for place, lines in _functions("src") if lines > FUNCTION_SOFT_LINES}


def _files() -> Iterator[tuple[str, int]]:
    for folder in python_folders():
        yield from ((module.place, module.text.count("\n")) for module in modules(folder))


def _functions(folder: str) -> Iterator[tuple[str, int]]:
    for module in modules(folder):
        yield from _functions_within(module, module.tree, "")


def _functions_within(module: Module, node: ast.AST, prefix: str) -> Iterator[tuple[str, int]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{module.place}:{prefix}{child.name}", _lines(child)
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _functions_within(module, child, f"{prefix}{child.name}.")


def _lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """From `def` to the end, the docstring left out: words cost nothing."""
    total = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        total -= (first.end_lineno or first.lineno) - first.lineno + 1
    return total
