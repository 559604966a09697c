"""One task of a job, as the one who builds the job holds it."""

from typing import Any, Generic

from perdure.app.task import R_co, ResultOf, Task


class Node(Generic[R_co]):
    """One task of a job that is being built."""

    def __init__(self, name: str, task: Task[..., R_co] | None) -> None:
        self.name = name
        self.task = task
        self.result: Any = ResultOf(name)
        """Give this as a field of another task: it depends on this one then, and gets its result."""

    def __repr__(self) -> str:
        return f"<perdure job task {self.name!r}>"
