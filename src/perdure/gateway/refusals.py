"""What only the edge refuses: it never reaches an operation."""

from perdure.errors import Refused


class NoRoute(Refused):
    """Nothing is at this path. `/docs` lists what is."""

    code = "no_route"
    status = 404


class MethodNotAllowed(Refused):
    """The path exists and does not take this method; the header `Allow` lists those that it takes."""

    code = "method_not_allowed"
    status = 405


class UnsupportedMedia(Refused):
    """The body must be JSON in UTF-8, not compressed: `Content-Type: application/json`."""

    code = "unsupported_media_type"
    status = 415


class HeadersTooLarge(Refused):
    """The request line and the headers together are over their limit."""

    code = "headers_too_large"
    status = 431


class TooSlow(Refused):
    """The request did not arrive in time; send it again, faster."""

    code = "request_timeout"
    status = 408


class TooManyRequests(Refused):
    """The client sends more requests than it may; try again in `retry_after` seconds."""

    code = "too_many_requests"
    status = 429


class TooManyConnections(Refused):
    """The gateway has all the connections that it takes; try again soon, and keep connections open."""

    code = "too_many_connections"
    status = 503
