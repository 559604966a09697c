"""Handlers about the gateway itself: health, metrics, its description."""

from collections.abc import Awaitable, Callable
from typing import Any, Literal

from perdure import wire
from perdure.errors import NotFound
from perdure.gateway import problems
from perdure.gateway.readiness import Readiness
from perdure.gateway.request import Answer, Request

Render = Callable[[], Awaitable[bytes]]
Notices = Callable[[], list[str]]


class SystemHandlers:
    """What probes, Prometheus and readers ask."""

    def __init__(
        self, readiness: Readiness, notices: Notices, metrics: Render, description: dict[str, Any], docs: bytes
    ) -> None:
        self._readiness = readiness
        self._notices = notices
        self._metrics = metrics
        self._description = description
        self._docs = docs

    async def check_health(self, request: Request) -> Answer:
        """The process answers."""
        return Answer(wire.Health())

    async def check_readiness(self, request: Request) -> Answer:
        """Whether work can be taken."""
        ready = self._readiness.ready
        status: Literal["ready", "not_ready"] = "ready" if ready else "not_ready"
        notices = [*self._notices(), *self._readiness.notices]
        shown = wire.Readiness(status=status, checks=dict(self._readiness.checks()), notices=notices)
        return Answer(shown, 200 if ready else 503)

    async def read_metrics(self, request: Request) -> Answer:
        """Metrics for Prometheus."""
        return Answer(await self._metrics())

    async def describe_api(self, request: Request) -> Answer:
        """OpenAPI 3.1."""
        return Answer(self._description)

    async def find_docs(self, request: Request) -> Answer:
        """The way to the API reference, beside this path wherever it is mounted."""
        return Answer(b'<a href="docs">API reference</a>', 307, ((b"location", b"docs"),))

    async def show_docs(self, request: Request) -> Answer:
        """The API reference."""
        return Answer(self._docs)

    async def explain_problem(self, request: Request) -> Answer:
        """What a type of problem means."""
        page = problems.page(request.path["code"])
        if page is None:
            raise NotFound("there is no such type of problem", what="problem type")
        return Answer(page)
