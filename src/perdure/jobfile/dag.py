"""The graph of a job in a file: its edges, and where in the file it breaks a rule."""

from collections.abc import Iterable, Sequence

from perdure.domain.job import check_graph, check_names_differ
from perdure.engine.requests import Dependency, JobRequest
from perdure.errors import Invalid
from perdure.jobfile.document import Document, Path


def parents(request: JobRequest) -> dict[str, list[str]]:
    """The names that each task depends on, by its name."""
    return {task.name: [parent_name(each) for each in task.depends_on] for task in request.tasks}


def depend_on_bound(document: Document, request: JobRequest, at: Path = ()) -> None:
    """Have each task depend on those whose results it takes, as in Python, with the failure policy of the job.

    Raises `Invalid` with the place for a result of no task of the job. `at`: where in the document the job is.
    """
    names = {task.name for task in request.tasks}
    for index, task in enumerate(request.tasks):
        above = {parent_name(each) for each in task.depends_on}
        for field, bound in task.bindings.items():
            for parent in [bound] if isinstance(bound, str) else bound:
                if parent not in names:
                    path = (*at, "tasks", index, "bindings", field)
                    document.refuse(path, f"{task.name!r} takes the result of {parent!r}, which the job does not have")
                if parent not in above:
                    above.add(parent)
                    task.depends_on = [*task.depends_on, parent]


def check_dag(document: Document, request: JobRequest, names: Sequence[Path]) -> None:
    """Refuse repeated names, unknown parents, circles and what is too large, where the culprit stands.

    `names` tells where in the document the name of each task is.
    """
    try:
        check_names_differ(task.name for task in request.tasks)
        check_graph(parents(request))
    except Invalid as error:
        path = _culprit(request, names, error.fields.get("names", ()))
        facts = {name: value for name, value in error.fields.items() if name != "field"}
        document.refuse(path, error.message, **facts)


def parent_name(dependency: str | Dependency) -> str:
    """The name of a parent, however it is written."""
    return dependency if isinstance(dependency, str) else dependency.name


def _culprit(request: JobRequest, names: Sequence[Path], at_fault: Iterable[str]) -> Path:
    """The last task that bears one of the names, or else the first that depends on one."""
    wanted = set(at_fault)
    bearers = [index for index, task in enumerate(request.tasks) if task.name in wanted]
    if bearers:
        return names[bearers[-1]]
    for index, task in enumerate(request.tasks):
        for position, each in enumerate(task.depends_on):
            if parent_name(each) in wanted:
                return (*names[index][:-1], "depends_on", position)
    return names[0][:-2] if names else ("tasks",)
