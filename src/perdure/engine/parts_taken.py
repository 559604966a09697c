"""Which parts of results were taken from which attempts, so that a success with a gap is noticed without reading."""

from perdure.domain.attempt import Part

ATTEMPTS_MAX = 100_000
"""How many attempts are remembered; the oldest are forgotten first, and are then judged by the store alone."""


class _Taken:
    __slots__ = ("beyond", "final", "upto")

    def __init__(self) -> None:
        self.upto = 0
        self.beyond: set[int] = set()
        self.final: int | None = None


class PartsTaken:
    """A note per attempt that sent parts through this engine."""

    def __init__(self) -> None:
        self._attempts: dict[str, _Taken] = {}

    def note(self, attempt_id: str, part: Part) -> None:
        """The store has this part."""
        taken = self._attempts.get(attempt_id)
        if taken is None:
            while len(self._attempts) >= ATTEMPTS_MAX:
                self._attempts.pop(next(iter(self._attempts)))
            taken = self._attempts[attempt_id] = _Taken()
        if part.final:
            taken.final = part.sequence
        if part.sequence <= taken.upto:
            return
        taken.beyond.add(part.sequence)
        while taken.upto + 1 in taken.beyond:
            taken.upto += 1
            taken.beyond.discard(taken.upto)

    def missing(self, attempt_id: str) -> int | None:
        """The number of the first part that is missing for a success; `None` when none is, or none was sent."""
        taken = self._attempts.get(attempt_id)
        if taken is None or (taken.final is not None and taken.upto >= taken.final):
            return None
        return taken.upto + 1

    def forget(self, *attempt_ids: str) -> None:
        """The attempts are over."""
        if self._attempts:
            for attempt_id in attempt_ids:
                self._attempts.pop(attempt_id, None)
