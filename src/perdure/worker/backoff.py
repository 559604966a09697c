"""How long to wait before asking an unavailable source again."""

import logging

from perdure.ambient import Chance

logger = logging.getLogger("perdure.worker")


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


class ToldBackoff(Backoff):
    """One that says once in the log that something does not work, and once that it works again."""

    def __init__(self, chance: Chance, away: str, back: str) -> None:
        super().__init__(chance)
        self._texts = away, back
        self._told = False

    def tell(self, error: Exception) -> None:
        """It did not work."""
        if not self._told:
            logger.warning("%s: %s", self._texts[0], error)
        self._told = True

    def reset(self) -> None:
        """It worked: begin anew."""
        super().reset()
        if self._told:
            logger.info("%s", self._texts[1])
        self._told = False
