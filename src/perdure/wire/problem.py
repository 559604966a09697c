"""What every refusal looks like: RFC 9457, `application/problem+json`."""

import msgspec

MEDIA_TYPE = "application/problem+json"


class Problem(msgspec.Struct, kw_only=True, frozen=True):
    """Why a request was refused. Further members are the facts of the error, such as `task_id` or `limit_bytes`."""

    type: str
    """`/problems/<code>`: a page of the gateway itself that tells what it means and what to do."""
    title: str
    status: int
    detail: str
    code: str
    """The name of the error for programs; it never changes."""
    field: str | None = None
    """The place in the request that is at fault."""
    request_id: str | None = None
