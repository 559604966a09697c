"""WfFormat 1.3 to 1.6, the instances of the WfCommons project: each task becomes a sleep of its recorded run time.

Up to 1.4 a task names its parents and children by name and an edge may stand at one end only; from 1.5 on
by id, with the run times in a part of their own. What else a file tells (machines, files, energy) is left alone.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from perdure.builtin import SLEEP_KIND
from perdure.engine.requests import Dependency, JobRequest, JobTaskRequest
from perdure.jobfile.dag import check_dag
from perdure.jobfile.document import Document, Path

VERSIONS = ("1.3", "1.4", "1.5", "1.6")
SHOWN_NAMES = 3


class _Node(NamedTuple):
    name: str
    path: Path
    parents: Mapping[str, Path]
    children: Mapping[str, Path]
    runtime: float | None


def recognizes(value: Mapping[str, Any]) -> bool:
    """Whether a file is meant as WfFormat: perdure's own has no `workflow`."""
    return "workflow" in value or "schemaVersion" in value


def decode(document: Document, time_scale: float) -> tuple[JobRequest, dict[str, float], tuple[str, ...]]:
    """The job, the seconds of each task by name, and notes on what was assumed. Raises `Invalid` with the place."""
    value = document.value
    version = value.get("schemaVersion")
    if version not in VERSIONS:
        document.refuse(("schemaVersion",), f"WfFormat {version!r} is not read, only {', '.join(VERSIONS)}")
    workflow = value.get("workflow")
    if not isinstance(workflow, dict):
        document.refuse(("workflow",), "a WfFormat file has an object 'workflow'")
    nodes = _split(document, workflow) if "specification" in workflow else _inline(document, workflow)
    edges, one_sided = _edges(document, nodes)
    seconds = {node.name: (node.runtime or 0.0) * time_scale for node in nodes}
    request = JobRequest(
        name=_job_name(document, value),
        tasks=[_task(node, edges[node.name], seconds[node.name]) for node in nodes],
        metadata={"format": f"WfFormat {version}", "time_scale": time_scale},
    )
    check_dag(document, request, [node.path for node in nodes])
    return request, seconds, tuple(_notes(nodes, one_sided, version))


def _job_name(document: Document, value: Mapping[str, Any]) -> str:
    name = value.get("name", "workflow")
    if not isinstance(name, str) or not name:
        document.refuse(("name",), "expected text")
    return name[:200]


def _task(node: _Node, parents: Iterable[str], seconds: float) -> JobTaskRequest:
    depends_on: list[str | Dependency] = list(parents)
    return JobTaskRequest(name=node.name, kind=SLEEP_KIND, payload={"seconds": seconds}, depends_on=depends_on)


def _inline(document: Document, workflow: Mapping[str, Any]) -> list[_Node]:
    """Up to 1.4: one list, by name where names differ, by id otherwise."""
    path: Path = ("workflow", "tasks")
    tasks = _objects(document, workflow, path)
    names = [task.get("name") for task in tasks]
    key = "name" if all(names) and len(set(map(str, names))) == len(names) else "id"
    aliases = {task["id"]: task["name"] for task in tasks if key == "name" and isinstance(task.get("id"), str)}
    nodes = []
    for index, task in enumerate(tasks):
        here = (*path, index)
        field = "runtimeInSeconds" if "runtimeInSeconds" in task else "runtime"
        runtime = _runtime(document, task, (*here, field))
        nodes.append(_node(document, task, key, here, runtime, aliases))
    _names(document, nodes)
    return nodes


def _split(document: Document, workflow: Mapping[str, Any]) -> list[_Node]:
    """From 1.5 on: the graph in `specification`, the run times in `execution`, joined by id."""
    path: Path = ("workflow", "specification", "tasks")
    tasks = _objects(document, _object(document, workflow, "specification"), path)
    runtimes: dict[str, float | None] = {}
    if "execution" in workflow:
        execution = _object(document, workflow, "execution")
        ran: Path = ("workflow", "execution", "tasks")
        for index, task in enumerate(_objects(document, execution, ran)):
            name = _text(document, task, "id", (*ran, index))
            if name in runtimes:
                document.refuse((*ran, index, "id"), f"the run of task {name!r} is there twice")
            runtimes[name] = _runtime(document, task, (*ran, index, "runtimeInSeconds"))
    nodes = [_node(document, task, "id", (*path, index), None, {}) for index, task in enumerate(tasks)]
    known = _names(document, nodes)
    for index, name in enumerate(runtimes):
        if name not in known:
            document.refuse(("workflow", "execution", "tasks", index, "id"), f"the specification has no task {name!r}")
    return [node._replace(runtime=runtimes.get(node.name)) for node in nodes]


def _node(
    document: Document,
    task: Mapping[str, Any],
    key: str,
    path: Path,
    runtime: float | None,
    aliases: Mapping[str, str],
) -> _Node:
    return _Node(
        name=_text(document, task, key, path),
        path=(*path, key),
        parents=_references(document, task, "parents", path, aliases),
        children=_references(document, task, "children", path, aliases),
        runtime=runtime,
    )


def _names(document: Document, nodes: list[_Node]) -> set[str]:
    names: set[str] = set()
    for node in nodes:
        if node.name in names:
            document.refuse(node.path, f"two tasks of the workflow are called {node.name!r}")
        names.add(node.name)
    return names


def _references(
    document: Document, task: Mapping[str, Any], key: str, path: Path, aliases: Mapping[str, str]
) -> dict[str, Path]:
    listed = task.get(key, [])
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        document.refuse((*path, key), "expected a list of tasks")
    return {aliases.get(each, each): (*path, key, index) for index, each in enumerate(listed)}


def _edges(document: Document, nodes: list[_Node]) -> tuple[dict[str, dict[str, None]], int]:
    """The parents of each task in order, from both ends of every edge; and how many edges stand at one end only."""
    edges: dict[str, dict[str, None]] = {node.name: dict.fromkeys(node.parents) for node in nodes}
    stated = {(parent, node.name) for node in nodes for parent in node.parents}
    from_above = {(node.name, child) for node in nodes for child in node.children}
    for node in nodes:
        for name, path in (*node.parents.items(), *node.children.items()):
            if name not in edges:
                document.refuse(path, f"task {node.name!r} names {name!r}, which the workflow does not have")
        for child in node.children:
            edges[child].setdefault(node.name)
    return edges, len(stated ^ from_above)


def _notes(nodes: list[_Node], one_sided: int, version: str) -> Iterable[str]:
    unknown = [node.name for node in nodes if node.runtime is None]
    if unknown:
        shown = ", ".join(unknown[:SHOWN_NAMES]) + (", ..." if len(unknown) > SHOWN_NAMES else "")
        yield f"{len(unknown)} of {len(nodes)} tasks have no recorded run time and take 0 s: {shown}"
    if one_sided and version not in ("1.3", "1.4"):
        yield f"{one_sided} dependencies are named by only one of their two tasks; they hold all the same"


def _runtime(document: Document, task: Mapping[str, Any], path: Path) -> float | None:
    value = task.get(str(path[-1]))
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        document.refuse(path, "a run time is a number of seconds, 0 or more")
    return float(value)


def _object(document: Document, workflow: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = workflow.get(key)
    if not isinstance(value, dict):
        document.refuse(("workflow", key), "expected an object")
    return value


def _objects(document: Document, holder: Mapping[str, Any], path: Path) -> list[dict[str, Any]]:
    value = holder.get("tasks")
    if not isinstance(value, list):
        document.refuse(path, "expected a list of tasks")
    for index, each in enumerate(value):
        if not isinstance(each, dict):
            document.refuse((*path, index), "expected an object")
    return value


def _text(document: Document, task: Mapping[str, Any], key: str, path: Path) -> str:
    value = task.get(key)
    if not isinstance(value, str) or not value:
        document.refuse((*path, key), f"a task needs its {key!r} as text")
    return value
