"""The clocks of a simulated machine and of its processes."""

import asyncio

from virtual_time import START_SECONDS, WALL_START_US

SECOND_US = 1_000_000


class Machine:
    """A machine that can be suspended, restarted, and whose wall clock can be stepped."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._boot = 1
        self._boot_ahead_us = 0
        self._wall_ahead_us = WALL_START_US - round(START_SECONDS * SECOND_US)

    def real_us(self) -> int:
        """Virtual time without any fault."""
        return round(self._loop.time() * SECOND_US)

    def boot_us(self) -> int:
        return self.real_us() + self._boot_ahead_us

    def boot_id(self) -> str:
        return f"boot-{self._boot}"

    def wall_us(self) -> int:
        return self.real_us() + self._wall_ahead_us

    def step_wall(self, by_us: int) -> None:
        """Step the wall clock, either way."""
        self._wall_ahead_us += by_us

    def jump(self, by_us: int) -> None:
        """Let the boot clock and the wall clock run ahead of everybody's monotonic clock: the machine was suspended."""
        self._boot_ahead_us += by_us
        self._wall_ahead_us += by_us

    def restart(self) -> None:
        """Another start of the machine: the boot clock begins anew."""
        self._boot += 1
        self._boot_ahead_us = 5 * SECOND_US - self.real_us()


class ProcessClock:
    """The `perdure.ambient.Clock` of one process: its monotonic clock may run fast or slow."""

    def __init__(self, machine: Machine, rate: float = 1.0) -> None:
        self._machine = machine
        self._begun_us = machine.real_us()
        self.rate = rate

    def monotonic_us(self) -> int:
        return 7 * SECOND_US + round((self._machine.real_us() - self._begun_us) * self.rate)

    def boot_us(self) -> int:
        return self._machine.boot_us()

    def boot_id(self) -> str:
        return self._machine.boot_id()

    def wall_us(self) -> int:
        return self._machine.wall_us()
