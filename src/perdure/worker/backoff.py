"""How long to wait before asking an unavailable source again."""

from perdure.ambient import Chance


class Backoff:
    """Doubles from `first` to `cap` seconds, each wait spread by chance between a half and the whole of it."""

    def __init__(self, chance: Chance, first: float = 0.2, cap: float = 5.0) -> None:
        self._chance = chance
        self._first = first
        self._cap = cap
        self._next = first

    def next_seconds(self) -> float:
        """The next wait."""
        whole = self._next
        self._next = min(whole * 2, self._cap)
        return self._chance.uniform(whole / 2, whole)

    def reset(self) -> None:
        """It worked: begin anew."""
        self._next = self._first
