"""Whether this process can take work: the store is read and written, the event loop turns, duties and polls succeed.

`/healthz` tells that the process answers at all; `/readyz` tells that it should be sent work.

A small write says little of new work: on a full disk it may still fit where others have been. So what a request was
refused with puts the store in doubt. It is asked at once, for a proof, and again until there is one. A refusal alone
does not make the process not ready: a single request may need more than there is, where all others find room.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping

from perdure.ambient import Clock
from perdure.domain.limits import SECOND_US
from perdure.errors import StoreFailed, StoreFull, StoreReadOnly

CHECK_SECONDS = {"reads": 1.0, "writes": 2.0}
"""How often the store is asked. A write wakes whoever looks for changes, so it is made less often."""
CHECK_TIMEOUT_SECONDS = 2.0
STALE_US = 5 * SECOND_US
"""How old the last good answer may be."""
GRACE_US = 30 * SECOND_US
"""How long after the last success of a duty or poll something is wrong."""

_log = logging.getLogger("perdure.gateway")

REST_SECONDS = 0.25
"""However much is refused, the store is asked no sooner again."""
HELD_US = 5 * SECOND_US
"""Where there is no proof, two refusals for lack of room within this time count for as long."""

DOUBTFUL = (StoreFull, StoreReadOnly, StoreFailed)
"""Refusals that say that other work may not be taken either."""

Probe = Callable[[], Awaitable[object]]
Proof = Callable[[], Awaitable[bool]]
"""Raises what new work would be refused with. False: there is no proof that it would not be."""


class Probing:
    """Asks one thing of the store again and again, and remembers when it was last answered."""

    def __init__(self, what: str, probe: Probe, clock: Clock, proof: Proof | None = None) -> None:
        self._what = what
        self._probe = probe
        self._proof = proof
        self._doubts = 0
        self._settled = 0
        self._unproved = proof is None
        self._doubted = asyncio.Event()
        self._full_us: deque[int] = deque(maxlen=2)
        self._clock = clock
        self._answered_us: int | None = None
        self._fault = "it has not answered yet"

    def state(self) -> str:
        """`ok`, or what is wrong: the code of an error where there was one."""
        if self._answered_us is None or self._fault:
            return self._fault
        now_us = self._clock.monotonic_us()
        if len(self._full_us) == 2 and now_us - self._full_us[0] <= HELD_US and self._unproved:
            return StoreFull.code
        stale = now_us - self._answered_us > STALE_US
        return "it has not answered for a while" if stale else "ok"

    async def ask_again_and_again(self) -> None:
        """Ask until cancelled."""
        while True:
            with contextlib.suppress(Exception):
                await self.ask()
            await asyncio.sleep(min(REST_SECONDS, CHECK_SECONDS[self._what]))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, CHECK_SECONDS[self._what] - REST_SECONDS)):
                    await self._doubted.wait()

    def refused(self, error: Exception) -> None:
        """A request was refused by the store: it is in doubt if others may be as well."""
        if isinstance(error, DOUBTFUL):
            self._doubts += 1
            self._doubted.set()
            if isinstance(error, StoreFull):
                self._full_us.append(self._clock.monotonic_us())

    async def ask(self) -> None:
        """Ask once. What is wrong is told in the log when it begins and when it ends."""
        before, doubts = self._fault, self._doubts
        self._doubted.clear()
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_SECONDS):
                await self._probe()
                if self._proof is not None and self._settled < doubts:
                    self._unproved = not await self._proof()
        except TimeoutError:
            self._fault = f"it did not answer within {CHECK_TIMEOUT_SECONDS:g} s"
        except Exception as error:
            self._fault = str(getattr(error, "code", "it failed"))
        else:
            self._fault, self._answered_us = "", self._clock.monotonic_us()
            self._settled = doubts
        if self._fault != before:
            level = logging.WARNING if self._fault else logging.INFO
            _log.log(level, "%s of the store: %s", self._what, self._fault or "ok")


class Readiness:
    """Probes the store, and hears of duties and polls. Belongs to one event loop.

    `probes` are asked under their names: a store may be read and not be written, as on a full disk.
    """

    def __init__(self, probes: Mapping[str, Probe], clock: Clock, proofs: Mapping[str, Proof] | None = None) -> None:
        self._clock = clock
        proofs = proofs or {}
        self.probing = {what: Probing(what, probe, clock, proofs.get(what)) for what, probe in probes.items()}
        self._successes: dict[str, int] = {}
        self._expected: dict[str, int] = {}
        self.notices: list[str] = []
        """What whoever runs the process should know, though work is taken."""
        self._closing = False
        self._asking: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to ask."""
        if not self._asking:
            self._asking = [
                asyncio.create_task(each.ask_again_and_again(), name=f"perdure-gateway-readiness-{what}")
                for what, each in self.probing.items()
            ]

    async def stop(self) -> None:
        """Ask no more."""
        asking, self._asking = self._asking, []
        for each in asking:
            each.cancel()
        if asking:
            await asyncio.wait(asking)

    def refused(self, what: str, error: Exception) -> None:
        """A request that needs `what` of the store was refused with this."""
        self.probing[what].refused(error)

    def close(self) -> None:
        """The process is about to end: be not ready from now on, so that no new work is sent."""
        self._closing = True

    def expect(self, what: str) -> None:
        """`what` (duties, worker) has to succeed again and again from now on."""
        self._expected[what] = self._clock.monotonic_us()

    def ended(self, what: str, notice: str) -> None:
        """`what` has ended for good, and the rest goes on: nothing is expected of it any more, and that is told."""
        self._expected.pop(what, None)
        self.notices.append(notice)

    def succeeded(self, what: str) -> None:
        """`what` has succeeded just now."""
        self._successes[what] = self._clock.monotonic_us()

    def checks(self) -> Mapping[str, str]:
        """Each condition: `ok`, or what is wrong."""
        now_us = self._clock.monotonic_us()
        found = {what: each.state() for what, each in self.probing.items()}
        for what, since_us in self._expected.items():
            last_us = max(since_us, self._successes.get(what, since_us))
            late = now_us - last_us > GRACE_US
            found[what] = f"no success for {(now_us - last_us) // SECOND_US} s" if late else "ok"
        if self._closing:
            found["process"] = "is shutting down"
        return found

    @property
    def ready(self) -> bool:
        """Whether all conditions hold."""
        return all(each == "ok" for each in self.checks().values())
