"""What was measured: for each system and figure one value a round, and how they compare."""

import statistics
from collections import defaultdict
from collections.abc import Sequence


class Figures:
    """Values by system and figure, in the order of their rounds."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], list[float]] = defaultdict(list)
        self.failures: list[str] = []
        """What could not be measured, and why."""
        self.statements: dict[str, list[str]] = {}
        """What systems asked of the server during something: rows of a table."""

    def add(self, system: str, figure: str, *values: float) -> None:
        """Values of one round, or of several."""
        self._values[system, figure].extend(values)

    def values(self, system: str, figure: str) -> list[float]:
        """All of them."""
        return self._values.get((system, figure), [])

    def median(self, system: str, figure: str) -> float | None:
        """Of the rounds."""
        values = self.values(system, figure)
        return statistics.median(values) if values else None

    def ratio(self, above: tuple[str, str], below: tuple[str, str]) -> float | None:
        """The median of the rounds' ratios; of the medians where they had not the same rounds."""
        first, second = self.values(*above), self.values(*below)
        if not first or not second:
            return None
        if len(first) == len(second):
            return statistics.median(one / other for one, other in zip(first, second, strict=True))
        return statistics.median(first) / statistics.median(second)

    def worst_ratio(self, above: tuple[str, str], below: tuple[str, str]) -> float | None:
        """The lowest value above, by the median below."""
        first, second = self.values(*above), self.values(*below)
        return min(first) / statistics.median(second) if first and second else None

    def systems(self, figure: str) -> list[str]:
        """Who has a value of this figure, in the order of measurement."""
        return [system for system, each in self._values if each == figure]

    def best(self, systems: Sequence[str], figure: str) -> str | None:
        """Which of the systems has the lowest median."""
        known = [(median, each) for each in systems if (median := self.median(each, figure)) is not None]
        return min(known)[1] if known else None

    def __bool__(self) -> bool:
        return bool(self._values)
