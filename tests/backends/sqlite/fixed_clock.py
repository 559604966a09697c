"""A clock that only a test moves, each of its scales for itself."""

SECOND_US = 1_000_000


class FixedClock:
    """Meets `perdure.ambient.Clock`."""

    def __init__(self, wall_us: int = 1_800_000_000 * SECOND_US) -> None:
        self.wall = wall_us
        self.boot = 5_000 * SECOND_US
        self.start = "boot-1"

    def advance(self, us: int) -> None:
        """Let time pass on every scale."""
        self.wall += us
        self.boot += us

    def restart(self, wall_us: int) -> None:
        """Start the machine anew; it believes that it is `wall_us`."""
        self.wall, self.boot, self.start = wall_us, SECOND_US, f"{self.start}'"

    def monotonic_us(self) -> int:
        return self.boot

    def boot_us(self) -> int:
        return self.boot

    def boot_id(self) -> str:
        return self.start

    def wall_us(self) -> int:
        return self.wall
