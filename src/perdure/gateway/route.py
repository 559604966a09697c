"""What is said of one operation of the HTTP API."""

from typing import Any, NamedTuple

from perdure.errors import PerdureError

Problems = tuple[type[PerdureError], ...]

SMALL_MAX_BYTES = 1024 * 1024
"""The largest body of a request about one thing."""
LARGE_MAX_BYTES = 8 * 1024 * 1024
"""The largest body of a request about many things: send more in several requests."""


class Route(NamedTuple):
    """One operation. `path` has its variables in braces; all are texts of the path."""

    method: str
    path: str
    name: str
    """The operation: also its id in OpenAPI and its label in metrics."""
    permission: str | None
    """What a principal must have; `None` for what everybody may have."""
    summary: str
    answer: Any = None
    """The type of a good answer's body, or a tuple of types; `None` for no body (204) or one of another media type."""
    body: Any = None
    """The type of the request's body; `None` for no body."""
    optional: bool = False
    """The body may be left out."""
    query: Any = None
    """The type of the parameters; `None` for none."""
    statuses: tuple[int, ...] = (200,)
    problems: Problems = ()
    """What it may raise besides what every route may (`Malformed`, `Invalid`, `Unavailable`)."""
    keyed: bool = False
    """It takes the header `Idempotency-Key`."""
    conditional: bool = False
    """It takes the headers `If-Match` and `If-None-Match`, and answers with `ETag`."""
    max_bytes: int = SMALL_MAX_BYTES
    """The largest body taken."""
    media: str = "application/json"
    """The media type of a good answer."""
    waits: bool = False
    """It may be answered late, because it waits for something to happen."""

    @property
    def in_turn(self) -> bool:
        """Whether its clients take turns, each within its rate. Workers do not, whose leases hang on being answered,
        nor does who waits or looks how the gateway is.
        """
        return not self.waits and self.permission not in (None, "work")
