"""One exchange with a gateway: every wait bounded, repeats only of what may be repeated."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from enum import Enum
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

import msgspec

from perdure.ambient import Chance, process_id
from perdure.client.connection import Answer, NoAnswer, Unreachable
from perdure.client.pool import Place, Pool
from perdure.client.problems import error_of_answer, unreadable
from perdure.errors import Misuse, Overloaded, PerdureError, StoreUnreachable, Unavailable

SILENCE_SECONDS = 15.0
"""The longest silence while an answer is waited for, beyond what the request itself asked to wait."""
WHOLE_SECONDS = 60.0
"""The longest that one exchange may take, beyond what the request itself asked to wait."""
SLOWEST_BYTES_PER_SECOND = 32 * 1024
"""What is sent is allowed to travel as slowly as this."""
PATIENCE_SECONDS = 10.0
"""How long a call is tried again while the gateway is away."""
STRANGER_SECONDS = 2.0
"""The same while no gateway has answered at all yet: the address may be wrong."""
TOO_SOON = "too_many_requests"
"""The code of the problem of a client that sends more than its rate."""
REST_FIRST_SECONDS = 0.05
REST_MAX_SECONDS = 2.0
PORTS = {"http": 80, "https": 443}


class Lane(Enum):
    """Connections of one purpose, so that one cannot use up another's."""

    CALLS = "calls"
    """What programs ask for."""
    WORK = "work"
    """Claims, reports, settles and renewals: these come before all else."""
    POLLS = "polls"
    """Requests that wait for something to happen."""


CONNECTIONS = {Lane.CALLS: 16, Lane.WORK: 8, Lane.POLLS: 8}
"""The most connections of each sort, in one event loop."""


class Repeat(Enum):
    """Whether a request may be sent again."""

    ALWAYS = "always"
    """It reads, or the same again changes nothing."""
    UNSENT = "unsent"
    """Only when it certainly did not arrive."""
    NEVER = "never"
    """Whoever calls does so: a worker has its own clock for that."""


class Request(NamedTuple):
    """What is asked for."""

    method: str
    path: str
    body: bytes | None = None
    query: dict[str, Any] | None = None
    wait: float = 0.0
    """How long the gateway was asked to wait before it answers."""
    lane: Lane = Lane.CALLS
    repeat: Repeat = Repeat.ALWAYS
    headers: bytes = b""
    """Lines beside the usual ones, each with its end."""


class Transport:
    """Exchanges with one gateway, from any number of event loops; each loop has connections of its own.

    It connects to the gateway itself: proxies that the environment names are not used.
    """

    def __init__(self, url: str, chance: Chance, *, patience: float = PATIENCE_SECONDS) -> None:
        self.url = url
        parts = urlsplit(url)
        self._path = parts.path
        self._place = Place(
            parts.hostname or "",
            parts.port or PORTS[parts.scheme],
            ssl.create_default_context() if parts.scheme == "https" else None,
        )
        # All its connections are one client, where clients take turns.
        client = chance.bits(64)
        self._headers = (
            f" HTTP/1.1\r\nhost: {parts.netloc}\r\naccept: application/json\r\nperdure-client: {client:016x}\r\n"
        ).encode()
        self._chance = chance
        self._patience = patience
        self._connections: dict[tuple[int, asyncio.AbstractEventLoop], _Connections] = {}
        self._met = False
        self._closed = False

    async def ask(self, request: Request, answer: Any) -> Any:
        """Send a request and decode its answer as the type `answer`; `None` for an answer without a body.

        Raises the error that the gateway told, `StoreUnreachable` when there is none, `InvariantBroken` for an answer
        that cannot be read.
        """
        return (await self.ask_whole(request, answer))[0]

    async def ask_whole(self, request: Request, answer: Any) -> tuple[Any, Answer]:
        """The same, with the answer as it came."""
        whole = await self._exchange_patiently(request)
        if answer is None:
            return None, whole
        try:
            return msgspec.json.decode(whole.body, type=answer), whole
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise unreadable(self.url, error) from None

    async def close(self) -> None:
        """Let go of this loop's connections; whoever asks again is refused. Harmless when closed already."""
        self._closed = True
        mine = self._connections.pop((process_id(), asyncio.get_running_loop()), None)
        if mine is not None:
            await mine.close()

    async def _exchange_patiently(self, request: Request) -> Answer:
        loop = asyncio.get_running_loop()
        began = loop.time()
        rest = REST_FIRST_SECONDS
        while True:
            try:
                return await self._exchange(request)
            except (Unreachable, Unavailable, Overloaded) as failure:
                error = self._away(failure) if isinstance(failure, Unreachable) else failure
                if not _may_repeat(request.repeat, failure):
                    raise error from None
                pause = max(self._chance.uniform(rest / 2, rest), float(error.fields.get("retry_after", 0.0)))
                patience = self._patience if self._met else min(self._patience, STRANGER_SECONDS)
                if loop.time() + pause > began + patience:
                    raise error from None
            await asyncio.sleep(pause)
            rest = min(rest * 2, REST_MAX_SECONDS)

    async def _exchange(self, request: Request) -> Answer:
        pool = (await self._here()).pools[request.lane]
        data = self._encoded(request)
        extra = request.wait + len(data) / SLOWEST_BYTES_PER_SECOND
        try:
            answer = await pool.ask(data, SILENCE_SECONDS + extra, WHOLE_SECONDS + extra)
        except NoAnswer as error:
            raise StoreUnreachable(
                f"the gateway at {self.url} did not answer: {error}. What was asked for may have been done",
                gateway=self.url,
            ) from None
        self._met = True
        if answer.status < 300:
            return answer
        raise self._told(answer)

    def _away(self, failure: Unreachable) -> StoreUnreachable:
        return StoreUnreachable(f"the gateway at {self.url} cannot be reached: {failure}", gateway=self.url)

    def _encoded(self, request: Request) -> bytes:
        target = self._path + request.path
        if request.query:
            target += "?" + urlencode(request.query, doseq=True)
        head = f"{request.method} {target}".encode("ascii") + self._headers + request.headers
        if request.body is None:
            return head + (b"\r\n" if request.method == "GET" else b"content-length: 0\r\n\r\n")
        return b"%scontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (
            head,
            len(request.body),
            request.body,
        )

    def _told(self, answer: Answer) -> PerdureError:
        content_type = answer.headers.get(b"content-type", b"").decode("latin-1")
        error = error_of_answer(answer.status, content_type, answer.body, self.url)
        after = answer.headers.get(b"retry-after", b"")
        if after.isdigit() and "retry_after" not in error.fields:
            error.fields["retry_after"] = float(after)
        return error

    async def _here(self) -> "_Connections":
        if self._closed:
            raise Misuse("this client is closed")
        key = (process_id(), asyncio.get_running_loop())
        mine = self._connections.get(key)
        if mine is None:
            for process, loop in list(self._connections):
                if loop.is_closed():
                    del self._connections[(process, loop)]
            mine = self._connections[key] = _Connections(self._place)
            await mine.open()
        return mine


def _may_repeat(repeat: Repeat, failure: Unreachable | Unavailable | Overloaded) -> bool:
    if isinstance(failure, Overloaded):
        # What came too soon was not looked at; a queue that is full is the caller's affair.
        return failure.fields.get("problem") == TOO_SOON
    if repeat is Repeat.ALWAYS:
        return True
    return repeat is Repeat.UNSENT and isinstance(failure, Unreachable)


class _Connections:
    """The connections of one event loop. They end with the loop, also where nobody closes them.

    An asynchronous generator that is left open is closed by the loop before it ends (`asyncio.run` sees to it): that
    is how the connections of a thread that only runs a loop for a while are let go of.
    """

    def __init__(self, place: Place) -> None:
        self.pools = {lane: Pool(place, CONNECTIONS[lane]) for lane in Lane}
        self._life = self._live()

    async def open(self) -> None:
        """Tie them to the running loop."""
        await anext(self._life)

    async def close(self) -> None:
        """Close them."""
        await self._life.aclose()

    async def _live(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            for pool in self.pools.values():
                await pool.close()
