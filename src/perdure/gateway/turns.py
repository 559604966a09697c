"""Turns of clients: whoever asks for much waits behind itself, and not in front of others.

Each client has a line of its own. Of those at the head of a line, the one goes first whose client has had the least:
its requests are put on a time line by what they cost, and a client that was quiet begins at the present, not in the
past (start-time fair queueing). How much is under way at once is bounded, for all together and for each client.

What is under way together is written together: the more, the better the rate, and the longer each of them takes. So
while there is a client that asks now and then beside others that ask without a pause, its own begins at once (it could
have had more, and it has to let as much time pass before that is so again), and theirs goes in batches with rests
between: a part of the gateway is kept free for it, because what finds every processor busy waits for it to be free.
"""

import asyncio
import heapq
from collections import deque
from itertools import count
from typing import Any, NamedTuple

AT_ONCE = 24
"""How many requests are under way at once; more wait for their turn. The store writes what is under way together."""
AT_ONCE_BESIDE_QUIET = 8
"""And so many, in batches, while somebody has asked of late who asks now and then."""
REST_BESIDE_QUIET = 2.0
"""Then a batch is followed by a rest of so many times its length,"""
REST_MAX_SECONDS = 0.02
"""and of no more than this."""
CLIENT_AT_ONCE = 8
"""How many of them one client may have, unless it is alone."""
QUIET_REQUESTS = 6.0
"""A client asks now and then when so many small requests more would leave it behind the one who has had most."""
QUIET_SECONDS = 0.5
"""For so long after its last request it is thought of."""
ALONE_SECONDS = 1.0
"""So long after the last request of others a client counts as alone."""
COST_BYTES = 2_048
"""So long a body costs as much again as a small request."""
COST_ROWS = 20
"""And so many rows of an answer."""
FORGET_AT = 4_096
"""With so many clients known, those are forgotten that have nothing under way."""


class _Waiting(NamedTuple):
    cost: float
    turn: "asyncio.Future[None]"


class _Client:
    __slots__ = ("begins", "quick", "running", "waiting")

    def __init__(self) -> None:
        self.begins = 0.0
        """Where on the time line its next request begins."""
        self.running = 0
        """How many requests it has under way, or about to be: at the head of its line."""
        self.quick = 0
        """And how many of them began at once, because it asks now and then."""
        self.waiting: deque[_Waiting] = deque()


class Turns:
    """Belongs to one event loop."""

    def __init__(self, at_once: int = AT_ONCE, client_at_once: int = CLIENT_AT_ONCE) -> None:
        self._at_once = at_once
        self._running = 0
        """How many requests are under way, without those that began at once beside others."""
        self._quick = 0
        self._batch_began = 0.0
        self._batch_after = 0.0
        self._batch_ends = False
        """Whether some of a batch have ended, and others have not."""
        self._rest: asyncio.TimerHandle | None = None
        self._quiet_until = float("-inf")
        self._client_at_once = client_at_once
        self._present = 0.0
        self._furthest = 0.0
        """Where whoever has had most can begin next."""
        self._clients: dict[str, _Client] = {}
        self._heads: list[tuple[float, float, int, asyncio.Future[None], float]] = []
        """Where each begins, where its client could have begun, which came first, and what it costs."""
        self._order = count()
        self._latest: str | None = None
        self._latest_at = 0.0
        self._others_at = float("-inf")

    def note(self, client: str) -> None:
        """The client has sent something, whether it takes turns or not."""
        now = asyncio.get_running_loop().time()
        if client != self._latest:
            if self._latest is not None:
                self._others_at = self._latest_at
            self._latest = client
        self._latest_at = now

    def alone(self, client: str) -> bool:
        """Whether nobody else has sent anything lately."""
        last = self._others_at if client == self._latest else self._latest_at
        return asyncio.get_running_loop().time() - last > ALONE_SECONDS

    async def begin(self, client: str, cost: float = 1.0) -> None:
        """Wait for a turn. `end` must follow, unless this is cancelled."""
        mine = self._clients.get(client)
        if mine is None:
            self._forget()
            mine = self._clients[client] = _Client()
        quiet = 0.0 < mine.begins < self._furthest - QUIET_REQUESTS
        if quiet:
            self._quiet_until = asyncio.get_running_loop().time() + QUIET_SECONDS
        if mine.running < self._bound(client):
            mine.running += 1
            if quiet and self._quick < self._at_once:
                mine.quick += 1
                self._quick += 1
                self._pass(self._place(mine, cost), cost)
                return
            if not self._heads and self._room():
                self._running += 1
                self._pass(self._place(mine, cost), cost)
                return
            turn = self._head(mine, cost)
        else:
            turn = asyncio.get_running_loop().create_future()
            mine.waiting.append(_Waiting(cost, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.end(client)
            elif all(each.turn is not turn for each in mine.waiting):
                self._leave(client)
            raise

    def end(self, client: str) -> None:
        """The turn is over."""
        mine = self._clients[client]
        if mine.quick:
            mine.quick -= 1
            self._quick -= 1
        else:
            self._running -= 1
            self._batch_ends = self._running > 0
            if not self._running:
                now = asyncio.get_running_loop().time()
                self._batch_after = now + min(REST_BESIDE_QUIET * (now - self._batch_began), REST_MAX_SECONDS)
        self._leave(client)
        self._serve()

    def _bound(self, client: str) -> int:
        return self._at_once if self.alone(client) else self._client_at_once

    def _leave(self, client: str) -> None:
        """A request of the client is under way no more: the next one comes to the head of its line."""
        mine = self._clients[client]
        mine.running -= 1
        bound = self._bound(client) if mine.waiting else 0
        while mine.waiting and mine.running < bound:
            cost, turn = mine.waiting.popleft()
            if not turn.done():
                mine.running += 1
                self._head(mine, cost, turn)
                return

    def _head(self, mine: _Client, cost: float, turn: "asyncio.Future[None] | None" = None) -> "asyncio.Future[None]":
        turn = turn or asyncio.get_running_loop().create_future()
        could = mine.begins
        heapq.heappush(self._heads, (self._place(mine, cost), could, next(self._order), turn, cost))
        return turn

    def _place(self, mine: _Client, cost: float) -> float:
        begins = max(mine.begins, self._present)
        mine.begins = begins + cost
        self._furthest = max(self._furthest, mine.begins)
        return begins

    def _room(self) -> int:
        """How many more requests may begin now. While somebody asks now and then: a batch, after a rest."""
        now = asyncio.get_running_loop().time()
        if now >= self._quiet_until:
            self._batch_began = now
            return self._at_once - self._running
        if self._batch_ends:
            return 0
        if not self._running:
            if now < self._batch_after:
                if self._rest is None:
                    self._rest = asyncio.get_running_loop().call_at(self._batch_after, self._rested)
                return 0
            self._batch_began = now
        return min(self._at_once, AT_ONCE_BESIDE_QUIET) - self._running

    def _pass(self, begins: float, cost: float) -> None:
        """A request begins, and it is present where it does. One that only goes on has its place far behind that."""
        if cost:
            self._present = max(self._present, begins)

    def _rested(self) -> None:
        self._rest = None
        self._serve()

    def _serve(self) -> None:
        room = self._room() if self._heads else 0
        while self._heads and room > 0:
            begins, _, _, turn, cost = heapq.heappop(self._heads)
            if not turn.done():
                self._pass(begins, cost)
                self._running += 1
                room -= 1
                turn.set_result(None)

    def _forget(self) -> None:
        if len(self._clients) >= FORGET_AT:
            self._clients = {name: each for name, each in self._clients.items() if each.running}


def cost_of(body: bytes, query: Any) -> float:
    """What a request costs, told before it is read: 1 for the smallest, more for what is long or asks for many rows."""
    return 1.0 + len(body) / COST_BYTES + getattr(query, "limit", 0) / COST_ROWS


class Turn:
    """The turn of one request."""

    __slots__ = ("_client", "_taken", "_turns")

    def __init__(self, turns: Turns, client: str) -> None:
        self._turns = turns
        self._client = client
        self._taken = False

    async def take(self, cost: float) -> None:
        """Wait for the turn."""
        await self._turns.begin(self._client, cost)
        self._taken = True

    def give(self) -> None:
        """Let others go on. Harmless when done already."""
        if self._taken:
            self._taken = False
            self._turns.end(self._client)

    async def pass_on(self) -> None:
        """Let others go first who have had less, and go on after them."""
        self.give()
        await asyncio.sleep(0)
        await self.take(0.0)

    @property
    def alone(self) -> bool:
        """Whether nobody else has sent anything lately."""
        return self._turns.alone(self._client)
