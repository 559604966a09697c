"""How many requests a second each client may send: a bucket of tokens each, that fills as time passes."""

from collections.abc import Callable

from perdure.gateway.refusals import TooManyRequests

BURST_SECONDS = 2.0
"""What a quiet client may send at once: as much as in so many seconds."""
FORGET_AT = 4_096
"""With so many clients known, those are forgotten whose buckets are full again."""


class Rates:
    """Belongs to one event loop. `now` tells seconds that only grow."""

    def __init__(self, rate: float, now: Callable[[], float]) -> None:
        self._rate = rate
        self._now = now
        self._empty_at: dict[str, float] = {}
        """When the bucket of a client would have been empty, had it filled ever since: the earlier, the fuller."""

    def take(self, client: str) -> None:
        """One request of the client. Raises `TooManyRequests` with `retry_after` when its bucket is empty."""
        now = self._now()
        empty_at = max(self._empty_at.get(client, 0.0), now - BURST_SECONDS) + 1.0 / self._rate
        if empty_at > now:
            raise TooManyRequests(
                f"this client sends more than {self._rate:g} requests a second: send lists, or more slowly; whoever"
                " runs the gateway can allow more with PERDURE_CLIENT_RATE",
                retry_after=round(max(empty_at - now, 0.001), 3),
            )
        if client not in self._empty_at and len(self._empty_at) >= FORGET_AT:
            self._empty_at = {name: at for name, at in self._empty_at.items() if at > now - BURST_SECONDS}
        self._empty_at[client] = empty_at
