"""What the tidy tests look at: the project's files, read and parsed once."""

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "perdure"
SQL_STORES = ("sqlite", "postgres")


class Module(NamedTuple):
    """One Python file. `place` is its path from the project's root, with forward slashes."""

    place: str
    text: str
    tree: ast.Module


@cache
def modules(folder: str = "src/perdure") -> tuple[Module, ...]:
    """Every Python file below a folder of the project, by path."""
    return tuple(
        Module(path.relative_to(ROOT).as_posix(), text, ast.parse(text))
        for path in sorted((ROOT / folder).rglob("*.py"))
        for text in [path.read_text(encoding="utf-8")]
    )


def python_folders() -> list[str]:
    """The folders that hold the project's Python."""
    return [name for name in ("src", "tests", "bench", "scripts", "examples") if (ROOT / name).is_dir()]


@cache
def statements(store: str) -> dict[str, str]:
    """Every statement of a store, by name."""
    folder = PACKAGE / "store" / store / "sql"
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.sql"))}


@cache
def migrations(store: str) -> dict[str, str]:
    """Every step of a store's schema, by name."""
    folder = PACKAGE / "store" / store / "migrations"
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.sql"))}


@cache
def written_files() -> tuple[Path, ...]:
    """The text files that people write: what git tracks or would, less the lock files."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    paths = [ROOT / line for line in listing.stdout.splitlines()] or [
        path for path in ROOT.rglob("*") if not set(path.relative_to(ROOT).parts) & {".venv", ".tools", ".git"}
    ]
    suffixes = {".py", ".sql", ".md", ".sh", ".toml", ".yaml", ".yml", ""}
    return tuple(p for p in paths if p.is_file() and p.suffix in suffixes and p.name != "LICENSE")


def docstring_nodes(tree: ast.Module) -> set[int]:
    """The ids of the constants that are docstrings, attribute docstrings included."""
    return {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    }


def strings(module: Module) -> Iterator[tuple[int, str]]:
    """The string constants of a module with their lines, docstrings left out."""
    documentation = docstring_nodes(module.tree)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.lineno, node.value


def imported(module: Module) -> Iterator[tuple[int, str]]:
    """The full dotted names that a module imports, with their lines: `from a import b` is `a.b`."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, f"{node.module or ''}.{alias.name}") for alias in node.names)
