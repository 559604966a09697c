"""Imports point one way, and the domain is pure."""

import ast
import subprocess
import sys

from tidy.source_tree import ROOT, imported, modules


def test_imports_keep_the_layers():
    command = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    run = subprocess.run([sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_domain_imports_the_standard_library_and_errors_only():
    offences = [
        f"{module.place}:{line} imports {name}"
        for module in modules("src/perdure/domain")
        for line, name in imported(module)
        if not name.startswith(("perdure.domain.", "perdure.errors."))
        and (name.split(".")[0] not in sys.stdlib_module_names or name.split(".")[0] in IMPURE)
    ]
    assert not offences, "\n".join(offences)


IMPURE = {
    "asyncio",
    "datetime",
    "io",
    "os",
    "pathlib",
    "random",
    "secrets",
    "socket",
    "subprocess",
    "threading",
    "time",
}


def test_the_domain_awaits_nothing_and_opens_nothing():
    offences = [
        f"{module.place}:{node.lineno}"
        for module in modules("src/perdure/domain")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith)
        or (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in {"open", "print", "input"}
        )
    ]
    assert not offences, "\n".join(offences)


def test_nobody_asks_for_the_class_of_a_store():
    offences = [
        f"{module.place}:{node.lineno}"
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "isinstance"
        and any(
            isinstance(name, ast.Name | ast.Attribute)
            and _last(name).endswith(("Store", "Ledger", "Views", "Definitions"))
            for name in ast.walk(node.args[1])
        )
    ]
    assert not offences, "ask `store.capabilities` instead:\n" + "\n".join(offences)


def _last(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr
