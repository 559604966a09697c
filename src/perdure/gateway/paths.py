"""Which route a path and a method mean: a look-up for plain paths, a walk by segments for those with variables."""

from collections.abc import Iterable, Mapping
from typing import Generic, NamedTuple, TypeVar
from urllib.parse import unquote

from perdure.gateway.refusals import MethodNotAllowed, NoRoute

H = TypeVar("H")


class Match(NamedTuple, Generic[H]):
    """What was found at a path."""

    target: H
    variables: Mapping[str, str]


class _Node(Generic[H]):
    def __init__(self) -> None:
        self.children: dict[str, _Node[H]] = {}
        self.variable: _Node[H] | None = None
        self.name = ""
        self.methods: dict[str, H] = {}


class Paths(Generic[H]):
    """Targets by method and path. A plain segment goes before a variable."""

    def __init__(self, entries: Iterable[tuple[str, str, H]]) -> None:
        self._root: _Node[H] = _Node()
        self._plain: dict[tuple[str, str], Match[H]] = {}
        for method, path, target in entries:
            node = self._root
            for segment in path.split("/")[1:]:
                node = self._below(node, segment)
            node.methods[method] = target
            if "{" not in path:
                self._plain[method, path] = Match(target, {})

    def find(self, method: str, path: str) -> Match[H]:
        """The target. `path` is as it came, escapes and all. Raises `NoRoute` or `MethodNotAllowed`."""
        return self._plain.get((method, path)) or self._walk(method, path)

    def _walk(self, method: str, path: str) -> Match[H]:
        variables: dict[str, str] = {}
        node: _Node[H] | None = self._root
        for segment in path.split("/")[1:]:
            assert node is not None
            child = node.children.get(segment)
            if child is None and segment:
                child = node.variable
                if child is not None:
                    variables[child.name] = unquote(segment)
            node = child
            if node is None:
                break
        if node is None or not node.methods:
            raise NoRoute("there is nothing at this path: see /docs")
        target = node.methods.get("GET" if method == "HEAD" else method)
        if target is None:
            allowed = sorted(node.methods)
            raise MethodNotAllowed(f"this path takes {', '.join(allowed)}, not {method[:20]}", allow=allowed)
        return Match(target, variables)

    def _below(self, node: _Node[H], segment: str) -> _Node[H]:
        if not segment.startswith("{"):
            return node.children.setdefault(segment, _Node())
        if node.variable is None:
            node.variable = _Node()
            node.variable.name = segment[1:-1]
        return node.variable
