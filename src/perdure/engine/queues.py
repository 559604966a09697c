"""Queues: pause, resume, choose their policy, cancel what waits in them."""

from typing import Any

import msgspec

from perdure.domain import limits
from perdure.engine.definitions import DEPTH_MAX
from perdure.engine.names import WordCheck
from perdure.engine.quantities import check_count
from perdure.engine.requests import Principal
from perdure.errors import Conflict, Invalid
from perdure.store.definitions import Definitions
from perdure.store.ledger import Ledger
from perdure.store.wakeups import Topic, Wakeups

PUT_TRIES = 10


class Queues:
    """What operators do with queues. A queue's policy is a document; what is not in it is as `QueuePolicy` says."""

    def __init__(self, ledger: Ledger, definitions: Definitions, wakeups: Wakeups, name: WordCheck) -> None:
        self._ledger = ledger
        self._definitions = definitions
        self._wakeups = wakeups
        self._check_name = name

    async def pause(self, queue: str, by: Principal) -> None:
        """From now on nothing of this queue is claimed, by any process."""
        await self._change(queue, by, {"paused": True})

    async def resume(self, queue: str, by: Principal) -> None:
        """What waits in this queue may be claimed again."""
        await self._change(queue, by, {"paused": False})

    async def configure(
        self,
        queue: str,
        by: Principal,
        *,
        dead_letters: bool | None = None,
        depth: int | None = None,
        unlimited: bool = False,
    ) -> None:
        """Choose whether failed tasks become dead letters, and how many tasks may wait (`unlimited` lifts that)."""
        change: dict[str, Any] = {}
        if dead_letters is not None:
            if not isinstance(dead_letters, bool):
                raise Invalid("dead_letters must be true or false", field="dead_letters")
            change["dead_letters"] = dead_letters
        if depth is not None:
            change["depth"] = check_count(depth, "depth", 0, DEPTH_MAX)
        if unlimited:
            change["depth"] = None
        await self._change(queue, by, change)

    async def purge(self, queue: str, by: Principal) -> int:
        """Cancel all that waits in this queue, and say how much that was."""
        self._check_name(queue)
        purged = 0
        more = True
        while more:
            swept = await self._ledger.purge_queue(by.organization, queue, by.name, limits.SWEEP_MAX_TASKS)
            purged += swept.moved
            more = swept.more and swept.moved > 0
        return purged

    async def _change(self, queue: str, by: Principal, change: dict[str, Any]) -> None:
        self._check_name(queue)
        for tries_left in reversed(range(PUT_TRIES)):
            stored = await self._definitions.get(by.organization, "queue", queue)
            document = msgspec.json.decode(stored.document) if stored else {}
            wanted = {**document, **change}
            if stored is not None and wanted == document:
                break
            try:
                await self._definitions.put(
                    by.organization,
                    "queue",
                    queue,
                    msgspec.json.encode(wanted).decode(),
                    by.name,
                    expected=stored.version if stored else 0,
                )
            except Conflict:
                if not tries_left:
                    raise
            else:
                break
        self._wakeups.announce(Topic.READY | Topic.CONTROL)
