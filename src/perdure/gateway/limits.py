"""What a request may be, before anything of it is kept."""

from dataclasses import dataclass

from perdure.domain import limits
from perdure.gateway.route import LARGE_MAX_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayLimits:
    """Durations are seconds."""

    header_max_bytes: int = 32 * 1024
    """Request line and headers together."""
    header_max_count: int = 100
    body_max_bytes: int = LARGE_MAX_BYTES
    """The largest body of any route; a route may take less."""
    json_max_keys: int = 200_000
    """Keys of all objects in a body together."""
    receive_timeout: float = 30.0
    """In which a request must have arrived as a whole, however it trickles."""
    idle_timeout: float = 75.0
    """How long a connection may lie idle between two requests."""
    connections: int = limits.CONNECTIONS_DEFAULT
    """How many connections are open at once; the next is told to come again."""
    client_rate: float = limits.CLIENT_RATE_DEFAULT
    """Requests a second that one client may send on the average, and twice as many at once."""
