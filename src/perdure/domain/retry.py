"""Whether a failed task runs again, and when: pure values."""

from dataclasses import dataclass
from typing import Literal

from perdure.domain.limits import MAX_ATTEMPTS_DEFAULT, MAX_ATTEMPTS_LIMIT, SECOND_US
from perdure.errors import Invalid

Backoff = Literal["exponential", "linear", "fixed"]
BACKOFFS: tuple[Backoff, ...] = ("exponential", "linear", "fixed")


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a task may fail by its own fault, and how long it waits in between.

    `base` and `cap` are seconds. The wait after the nth failure is `base` (fixed), `base * n` (linear) or
    `base * 2 ** (n - 1)` (exponential), at most `cap`, then spread by a factor between `1 - jitter` and `1 + jitter`.

    Raises `Invalid` with the field's name when a value is out of range.
    """

    max_attempts: int = MAX_ATTEMPTS_DEFAULT
    backoff: Backoff = "exponential"
    base: float = 5.0
    cap: float = 3600.0
    jitter: float = 0.2

    def __post_init__(self) -> None:
        if isinstance(self.max_attempts, bool) or not isinstance(self.max_attempts, int):
            raise Invalid("max_attempts must be a whole number", field="max_attempts")
        if not 1 <= self.max_attempts <= MAX_ATTEMPTS_LIMIT:
            raise Invalid(f"max_attempts must be between 1 and {MAX_ATTEMPTS_LIMIT}", field="max_attempts")
        if self.backoff not in BACKOFFS:
            raise Invalid(f"backoff must be one of {', '.join(BACKOFFS)}", field="backoff")
        for name, low, high in (
            ("base", 0.0, 86400.0 * 30),
            ("cap", 0.0, 86400.0 * 30),
            ("jitter", 0.0, 1.0),
        ):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
                raise Invalid(f"{name} must be between {low:.12g} and {high:.12g}", field=name)

    def delay_us(self, failures: int, spread: float) -> int:
        """Microseconds to wait after the nth failure (`failures` >= 1). `spread` in [-1, 1] is the caller's chance."""
        step = {
            "fixed": 1.0,
            "linear": float(failures),
            "exponential": 2.0 ** min(failures - 1, 60),
        }[self.backoff]
        seconds = min(self.cap, self.base * step) * (1.0 + self.jitter * spread)
        return max(0, round(seconds * SECOND_US))
