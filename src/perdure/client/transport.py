"""One exchange with a gateway: connections kept alive, every wait bounded, repeats only of what may be repeated.

`httpx` is known here and nowhere else.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator
from enum import Enum
from typing import Any, Literal, NamedTuple

import httpx
import msgspec

from perdure.ambient import Chance, process_id
from perdure.client.address import is_local
from perdure.client.problems import error_of_answer, unreadable
from perdure.errors import Misuse, PerdureError, StoreUnreachable, Unavailable

CONNECT_SECONDS = 5.0
WRITE_SECONDS = 15.0
ANSWER_SECONDS = 15.0
"""The longest silence while an answer is waited for, beyond what the request itself asked to wait."""
WHOLE_SECONDS = 60.0
"""The longest that one exchange may take, beyond what the request itself asked to wait."""
IDLE_SECONDS = 30.0
"""How long an unused connection is kept."""
PATIENCE_SECONDS = 10.0
"""How long a call is tried again while the gateway is away."""
REST_FIRST_SECONDS = 0.05
REST_MAX_SECONDS = 2.0

Trust = ssl.SSLContext | Literal[False]
HEADERS = {"content-type": "application/json", "accept": "application/json", "accept-encoding": "identity"}


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


class _Unsent(StoreUnreachable):
    """The gateway could not be reached at all: nothing was asked of it."""


class Transport:
    """Exchanges with one gateway, from any number of event loops; each loop has connections of its own."""

    def __init__(
        self,
        url: str,
        chance: Chance,
        *,
        patience: float = PATIENCE_SECONDS,
        network: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.url = url
        self._chance = chance
        self._patience = patience
        self._network = network
        # Reading the certificates that are trusted takes tens of milliseconds: once, and not at all without TLS.
        self._trust: Trust = ssl.create_default_context() if url.startswith("https:") else False
        self._connections: dict[tuple[int, asyncio.AbstractEventLoop], _Connections] = {}
        self._closed = False

    async def ask(self, request: Request, answer: Any) -> Any:
        """Send a request and decode its answer as the type `answer`; `None` for an answer without a body.

        Raises the error that the gateway told, `StoreUnreachable` when there is none, `InvariantBroken` for an answer
        that cannot be read.
        """
        body = await self._exchange_patiently(request)
        if answer is None:
            return None
        try:
            return msgspec.json.decode(body, type=answer)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise unreadable(self.url, error) from None

    async def close(self) -> None:
        """Let go of this loop's connections; whoever asks again is refused. Harmless when closed already."""
        self._closed = True
        mine = self._connections.pop((process_id(), asyncio.get_running_loop()), None)
        if mine is not None:
            await mine.close()

    async def _exchange_patiently(self, request: Request) -> bytes:
        loop = asyncio.get_running_loop()
        until = loop.time() + self._patience
        rest = REST_FIRST_SECONDS
        while True:
            try:
                return await self._exchange(request)
            except Unavailable as error:
                if not _may_repeat(request.repeat, error):
                    raise
                pause = max(self._chance.uniform(rest / 2, rest), float(error.fields.get("retry_after", 0.0)))
                if loop.time() + pause > until:
                    raise
            await asyncio.sleep(pause)
            rest = min(rest * 2, REST_MAX_SECONDS)

    async def _exchange(self, request: Request) -> bytes:
        client = (await self._here()).clients[request.lane]
        timeout = httpx.Timeout(
            ANSWER_SECONDS + request.wait, connect=CONNECT_SECONDS, write=WRITE_SECONDS, pool=ANSWER_SECONDS
        )
        try:
            async with asyncio.timeout(WHOLE_SECONDS + request.wait):
                answer = await client.request(
                    request.method,
                    self.url + request.path,
                    content=request.body,
                    params=request.query,
                    timeout=timeout,
                )
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise _Unsent(self._unreachable(error), gateway=self.url) from error
        except (httpx.HTTPError, TimeoutError) as error:
            raise StoreUnreachable(self._unreachable(error), gateway=self.url) from error
        except (httpx.InvalidURL, UnicodeError) as error:
            raise Misuse(f"{self.url} is no gateway's URL: {error}", store=self.url) from None
        if answer.status_code < 300:
            return answer.content
        raise self._told(answer)

    def _told(self, answer: httpx.Response) -> PerdureError:
        content_type = answer.headers.get("content-type", "")
        error = error_of_answer(answer.status_code, content_type, answer.content, self.url)
        after = answer.headers.get("retry-after", "")
        if after.isdigit() and "retry_after" not in error.fields:
            error.fields["retry_after"] = float(after)
        return error

    def _unreachable(self, error: Exception) -> str:
        cause = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return f"the gateway at {self.url} cannot be reached or does not answer ({cause})"

    async def _here(self) -> "_Connections":
        if self._closed:
            raise Misuse("this client is closed")
        key = (process_id(), asyncio.get_running_loop())
        mine = self._connections.get(key)
        if mine is None:
            for process, loop in list(self._connections):
                if loop.is_closed():
                    del self._connections[(process, loop)]
            mine = self._connections[key] = _Connections(self._network, self._trust, not is_local(self.url))
            await mine.open()
        return mine


def _may_repeat(repeat: Repeat, error: Unavailable) -> bool:
    if repeat is Repeat.ALWAYS:
        return True
    return repeat is Repeat.UNSENT and isinstance(error, _Unsent)


class _Connections:
    """The connections of one event loop. They end with the loop, also where nobody closes them.

    An asynchronous generator that is left open is closed by the loop before it ends (`asyncio.run` sees to it): that
    is how the connections of a thread that only runs a loop for a while are let go of.
    """

    def __init__(self, network: httpx.AsyncBaseTransport | None, trust: Trust, by_proxy: bool) -> None:
        self.clients = {lane: _client(lane, network, trust, by_proxy) for lane in Lane}
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
            for client in self.clients.values():
                with contextlib.suppress(RuntimeError, OSError):
                    await client.aclose()


def _client(lane: Lane, network: httpx.AsyncBaseTransport | None, trust: Trust, by_proxy: bool) -> httpx.AsyncClient:
    most = CONNECTIONS[lane]
    limits = httpx.Limits(max_connections=most, max_keepalive_connections=most, keepalive_expiry=IDLE_SECONDS)
    return httpx.AsyncClient(
        headers=HEADERS,
        limits=limits,
        transport=network,
        verify=trust,
        trust_env=by_proxy,
        follow_redirects=False,
        http2=False,
    )
