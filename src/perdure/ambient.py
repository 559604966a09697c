"""The only sources of time, identity and randomness. Tests and the simulation hand in their own."""

import os
import random
import secrets
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Clock(Protocol):
    """Time as this machine tells it. Only a store turns it into the time that leases are judged by."""

    def monotonic_us(self) -> int:
        """Microseconds that never step back; comparable within this process only."""

    def boot_us(self) -> int:
        """Microseconds since the machine started, sleep included; comparable between its processes."""

    def boot_id(self) -> str:
        """Names one start of the machine: `boot_us` of another start is another scale."""

    def wall_us(self) -> int:
        """Microseconds since 1970-01-01 UTC as the machine believes; it may step either way."""


class SystemClock:
    """The clock of the machine."""

    def __init__(self) -> None:
        self._boot_id = BOOT_ID.read_text().strip() if BOOT_ID.exists() else "unknown"

    def monotonic_us(self) -> int:
        return time.monotonic_ns() // 1000

    def boot_us(self) -> int:
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000

    def boot_id(self) -> str:
        return self._boot_id

    def wall_us(self) -> int:
        return time.time_ns() // 1000


class Chance:
    """Randomness that need not be secret: jitter. Seeded in tests."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)

    def uniform(self, low: float, high: float) -> float:
        """A number between `low` and `high`."""
        return self._random.uniform(low, high)

    def bits(self, count: int) -> int:
        """`count` bits, for `Ids` that shall be the same in every run of a test."""
        return self._random.getrandbits(count)


ENTROPY_BITS = 128
"""The size of one draw of randomness."""
ENTROPY_DRAWS = 256
"""How many draws are asked of the system at a time: a call for each id would cost more than the id."""


class Entropy:
    """Secret random bits from the system, fetched in advance.

    Each draw is taken out of the pool once, whichever thread takes it, and a forked child never uses what its parent
    fetched.
    """

    def __init__(self) -> None:
        self._pool: deque[bytes] = deque()
        self._pid = 0

    def bits(self, count: int) -> int:
        """`count` (at most `ENTROPY_BITS`) random bits as a number that is not negative."""
        if self._pid != os.getpid():
            self._pool, self._pid = deque(), os.getpid()
        try:
            draw = self._pool.popleft()
        except IndexError:
            draw = self._fetch()
        return int.from_bytes(draw, "big") >> (ENTROPY_BITS - count)

    def _fetch(self) -> bytes:
        size = ENTROPY_BITS // 8
        fetched = secrets.token_bytes(size * ENTROPY_DRAWS)
        self._pool.extend(fetched[start : start + size] for start in range(size, len(fetched), size))
        return fetched[:size]


COUNTERS = 0x1000
"""How many ids one millisecond has."""


def _head(ms: int) -> str:
    """How ids of this millisecond begin."""
    digits = f"{ms:012x}"
    return f"{digits[:8]}-{digits[8:]}-7"


def _end(bits: int) -> str:
    """How an id with these 62 random bits ends."""
    digits = f"{0x8000000000000000 | bits:016x}"
    return f"-{digits[:4]}-{digits[4:]}"


class Ids:
    """Makes ids (UUIDv7, so that rows of one time lie together) and lease tokens (128 secret bits)."""

    def __init__(self, clock: Clock, random_bits: Callable[[int], int] | None = None) -> None:
        self._clock = clock
        self._given_bits = random_bits
        self._random_bits = random_bits or Entropy().bits
        self._last_ms = 0
        self._counter = 0
        self._turn = threading.Lock()

    def new(self) -> str:
        """A new UUIDv7 in its 36-character form. Ids of one process ascend, whichever thread asks."""
        with self._turn:
            self._step()
            ms, counter = self._last_ms, self._counter
        return f"{_head(ms)}{counter:03x}{_end(self._random_bits(62))}"

    def some(self, count: int) -> list[str]:
        """`count` new ids, ascending: what that many calls of `new` would give, for less."""
        ends = self._ends(count)
        made: list[str] = []
        with self._turn:
            self._step()
            ms, counter = self._last_ms, self._counter
            while len(made) < count:
                if counter == COUNTERS:
                    ms, counter = ms + 1, 0
                head = _head(ms)
                numbers = range(counter, min(counter + count - len(made), COUNTERS))
                start = len(made)
                made += [f"{head}{number:03x}{end}" for number, end in zip(numbers, ends[start:], strict=False)]
                counter = numbers.stop
            self._last_ms, self._counter = ms, counter - 1
        return made

    def _ends(self, count: int) -> list[str]:
        """The last two groups of `count` ids: 62 random bits each."""
        if self._given_bits is not None:
            return [_end(self._given_bits(62)) for _ in range(count)]
        drawn = int.from_bytes(secrets.token_bytes(8 * count), "big")
        marked = drawn & int.from_bytes(b"\x3f\xff\xff\xff\xff\xff\xff\xff" * count, "big")
        marked |= int.from_bytes(b"\x80\0\0\0\0\0\0\0" * count, "big")
        digits = marked.to_bytes(8 * count, "big").hex()
        return [f"-{digits[start : start + 4]}-{digits[start + 4 : start + 16]}" for start in range(0, 16 * count, 16)]

    def _step(self) -> None:
        """Go on to the next pair of time and counter, none of which was used before."""
        ms = self._clock.wall_us() // 1000
        if ms > self._last_ms:
            self._last_ms, self._counter = ms, self._random_bits(11)
        else:
            self._counter += 1
            if self._counter == COUNTERS:
                self._last_ms, self._counter = self._last_ms + 1, 0

    def token(self) -> str:
        """A new lease token: 32 hexadecimal digits that nobody can guess."""
        return f"{self._random_bits(128):032x}"

    def tokens(self, count: int) -> list[str]:
        """`count` new lease tokens: what that many calls of `token` would give, for less."""
        if self._given_bits is not None:
            return [self.token() for _ in range(count)]
        digits = secrets.token_hex(16 * count)
        return [digits[start : start + 32] for start in range(0, len(digits), 32)]


def hostname() -> str:
    """The name of this machine, for people."""
    return socket.gethostname()


def process_id() -> int:
    """The number of this process."""
    return os.getpid()
