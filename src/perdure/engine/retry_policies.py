"""Retry policies as they are stored with tasks, decoded once each."""

import msgspec

from perdure.domain.retry import Retry
from perdure.errors import Invalid

KNOWN_MAX = 1_000

_decode = msgspec.json.Decoder(Retry).decode


class RetryPolicies:
    """Turns the JSON of a task's retry policy into the policy; remembers them, because many tasks share few."""

    def __init__(self) -> None:
        self._known: dict[str, Retry] = {}
        self._default = Retry()

    def of(self, text: str | None) -> Retry:
        """The policy; the default for `None`, and for what only a later perdure understands."""
        if text is None:
            return self._default
        known = self._known.get(text)
        if known is None:
            try:
                known = _decode(text)
            except (msgspec.MsgspecError, Invalid):
                known = self._default
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            self._known[text] = known
        return known
