"""The only sources of time, identity and randomness. Tests and the simulation hand in their own."""

import os
import random
import secrets
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
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


def _uuid(ms: int, counter: int, tail: int) -> str:
    head, end = f"{ms:012x}", f"{0x8000000000000000 | tail:016x}"
    return f"{head[:8]}-{head[8:]}-7{counter:03x}-{end[:4]}-{end[4:]}"


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
        return _uuid(ms, counter, self._random_bits(62))

    def some(self, count: int) -> list[str]:
        """`count` new ids, ascending: what that many calls of `new` would give, for less."""
        tails = self._tails(count)
        made: list[str] = []
        with self._turn:
            self._step()
            ms, counter = self._last_ms, self._counter
            for tail in tails:
                if counter > 0xFFF:
                    ms, counter = ms + 1, 0
                made.append(_uuid(ms, counter, tail))
                counter += 1
            self._last_ms, self._counter = ms, counter - 1
        return made

    def _tails(self, count: int) -> Iterable[int]:
        """62 random bits for each of `count` ids."""
        if self._given_bits is not None:
            return [self._given_bits(62) for _ in range(count)]
        return [bits >> 2 for (bits,) in struct.iter_unpack(">Q", secrets.token_bytes(8 * count))]

    def _step(self) -> None:
        """Go on to the next pair of time and counter, none of which was used before."""
        ms = self._clock.wall_us() // 1000
        if ms > self._last_ms:
            self._last_ms, self._counter = ms, self._random_bits(11)
        else:
            self._counter += 1
            if self._counter > 0xFFF:
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
