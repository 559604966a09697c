"""One connection: whatever the other end does, the caller gets an answer or an error, in bounded time."""

import asyncio
import contextlib
import traceback

import pytest

from perdure.ambient import Chance
from perdure.client import connection as connection_module
from perdure.client.connection import NoAnswer, Unreachable
from perdure.client.pool import Place, Pool
from perdure.client.transport import Request, Transport
from perdure.errors import InvariantBroken, Misuse, StoreUnreachable

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
ASK = b"GET / HTTP/1.1\r\n\r\n"


@contextlib.asynccontextmanager
async def scripted(*replies):
    """A server that gives each request the next reply; `None` closes the connection, a number is a silence.

    It yields the port and the list of requests; what is in one reply as a tuple is sent in pieces.
    """
    left = list(replies)
    requests = []
    connections = []
    tasks = set()

    async def connected(reader, writer):
        tasks.add(asyncio.current_task())
        connections.append(writer)
        try:
            while data := await reader.read(65_536):
                requests.append((len(connections), data))
                reply = left.pop(0) if left else OK
                if reply is None:
                    break
                for piece in reply if isinstance(reply, tuple) else (reply,):
                    if isinstance(piece, float):
                        await asyncio.sleep(piece)
                    else:
                        writer.write(piece)
                        await writer.drain()
                        await asyncio.sleep(0.001)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], requests
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.asynccontextmanager
async def pool_of(port, most=4):
    pool = Pool(Place("127.0.0.1", port, None), most)
    try:
        yield pool
    finally:
        await pool.close()


@contextlib.asynccontextmanager
async def transport_of(port, **options):
    transport = Transport(f"http://127.0.0.1:{port}", Chance(1), **options)
    try:
        yield transport
    finally:
        await transport.close()


async def test_one_connection_serves_many_requests():
    async with scripted() as (port, requests), pool_of(port) as pool:
        for _ in range(5):
            assert (await pool.ask(ASK, 5, 5)).body == b"{}"
    assert {number for number, _ in requests} == {1}


@pytest.mark.parametrize(
    "reply",
    [
        tuple(OK[index : index + 1] for index in range(len(OK))),
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" + OK,
        b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}",
    ],
    ids=["byte by byte", "chunked", "after a 100", "with a close"],
)
async def test_an_answer_may_come_in_any_legal_form(reply):
    async with scripted(reply) as (port, _), pool_of(port) as pool:
        answer = await pool.ask(ASK, 5, 5)
        assert (answer.status, answer.body) == (200, b"{}")
        assert (await pool.ask(ASK, 5, 5)).status == 200


@pytest.mark.parametrize(
    "reply",
    [
        None,
        b"SSH-2.0-OpenSSH\r\n\r\n",
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}", None),
        b"HTTP/1.1 200 OK\r\n" + b"x: " + b"y" * connection_module.HEAD_MAX_BYTES + b"\r\n\r\n",
    ],
    ids=["closed", "another protocol", "cut", "a huge head"],
)
async def test_a_bad_answer_is_an_error_and_the_next_request_has_a_new_connection(reply):
    cut = isinstance(reply, tuple)
    async with scripted(reply[0] if cut else reply) as (port, requests), pool_of(port) as pool:
        with pytest.raises(NoAnswer):
            await pool.ask(ASK, 0.3, 5)
        assert (await pool.ask(ASK, 5, 5)).body == b"{}"
    assert [number for number, _ in requests] == [1, 2]


async def test_silence_and_trickling_have_bounds():
    slow = tuple(piece for index in range(20) for piece in (OK[index : index + 1], 0.05))
    async with scripted((0.5,), slow) as (port, _), pool_of(port) as pool:
        with pytest.raises(NoAnswer, match="in time"):
            await pool.ask(ASK, 0.05, 5)
        with pytest.raises(NoAnswer, match="in time"):
            await pool.ask(ASK, 5, 0.2)


async def test_a_reply_that_comes_twice_is_not_taken_for_the_next_one():
    first = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n[1]"
    async with scripted(first + first, OK) as (port, requests), pool_of(port) as pool:
        with contextlib.suppress(NoAnswer):
            assert (await pool.ask(ASK, 5, 5)).body == b"[1]"
        assert (await pool.ask(ASK, 5, 5)).body == b"{}"
    assert [number for number, _ in requests] == [1, 2]


async def test_a_cancelled_request_takes_its_connection_along():
    async with scripted((0.2, OK)) as (port, requests), pool_of(port) as pool:
        asking = asyncio.create_task(pool.ask(ASK, 5, 5))
        while not requests:
            await asyncio.sleep(0.001)
        asking.cancel()
        await asyncio.wait([asking])
        assert (await pool.ask(ASK, 5, 5)).body == b"{}"
    assert [number for number, _ in requests] == [1, 2]


async def test_no_more_connections_than_allowed_and_everybody_has_a_turn():
    async with scripted() as (port, requests), pool_of(port, most=2) as pool:
        answers = await asyncio.gather(*(pool.ask(ASK, 5, 5) for _ in range(20)))
    assert [answer.status for answer in answers] == [200] * 20
    assert {number for number, _ in requests} <= {1, 2}


async def test_nobody_there_is_unreachable():
    async with scripted() as (port, _):
        pass
    async with pool_of(port) as pool:
        with pytest.raises(Unreachable):
            await pool.ask(ASK, 5, 5)


async def test_a_read_is_asked_again_and_what_may_not_be_repeated_is_not():
    async with scripted(None, None) as (port, requests), transport_of(port) as transport:
        assert await transport.ask(Request("GET", "/v1/kinds"), dict) == {}
        assert len(requests) == 3
    from perdure.client.transport import Repeat

    for repeat in (Repeat.UNSENT, Repeat.NEVER):
        async with scripted(None) as (port, requests), transport_of(port) as transport:
            with pytest.raises(StoreUnreachable, match="may have been done"):
                await transport.ask(Request("POST", "/v1/x", b"{}", repeat=repeat), dict)
            assert len(requests) == 1


async def test_patience_ends():
    async with scripted() as (port, _):
        pass
    async with transport_of(port, patience=0.2) as transport:
        with pytest.raises(StoreUnreachable, match="cannot be reached") as caught:
            await transport.ask(Request("GET", "/v1/kinds"), dict)
    assert type(caught.value) is StoreUnreachable
    assert "".join(traceback.format_exception(caught.value)).count("Traceback") == 1


async def test_retry_after_is_waited_for():
    busy = b"HTTP/1.1 503 x\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n"
    async with scripted(busy) as (port, _), transport_of(port) as transport:
        loop = asyncio.get_running_loop()
        began = loop.time()
        assert await transport.ask(Request("GET", "/v1/kinds"), dict) == {}
        assert loop.time() - began >= 1


async def test_what_answers_and_is_no_gateway_is_named():
    page = b"<html>hello</html>"
    for status, error in ((404, Misuse), (302, Misuse), (500, StoreUnreachable)):
        reply = b"HTTP/1.1 %d x\r\ncontent-type: text/html\r\ncontent-length: %d\r\n\r\n%s" % (status, len(page), page)
        async with scripted(reply) as (port, _), transport_of(port, patience=0) as transport:
            with pytest.raises(error, match="hello"):
                await transport.ask(Request("GET", "/v1/kinds"), dict)


async def test_a_good_answer_of_another_shape_is_a_defect():
    async with scripted() as (port, _), transport_of(port) as transport:
        with pytest.raises(InvariantBroken, match="cannot read"):
            await transport.ask(Request("GET", "/v1/kinds"), list)


async def test_connections_of_a_thread_end_with_its_loop(recwarn):
    async with scripted() as (port, _), transport_of(port) as transport:

        def in_thread():
            return asyncio.run(transport.ask(Request("GET", "/v1/kinds"), dict))

        assert await asyncio.to_thread(in_thread) == {}
        assert await transport.ask(Request("GET", "/v1/kinds"), dict) == {}
        assert len(transport._connections) == 1
    assert not recwarn
