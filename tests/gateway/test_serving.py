"""The gateway on a real socket: bounds of connections, slow senders, a blocked loop, stopping in order."""

import asyncio
import http.client
import json
import logging
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from gateway.serving import PATIENCE, exchange, port_of, served_process, serving
from perdure.ambient import SystemClock
from perdure.app import App
from perdure.errors import Misuse, StoreUnreachable
from perdure.gateway.access import check_listen, parse_listen
from perdure.gateway.readiness import CHECK_SECONDS, Readiness
from perdure.store.ledger import WorkerOrder

HEAD = b"POST /v1/tasks HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
GOOD = HEAD + b"connection: close\r\ncontent-length: 12\r\n\r\n" + b'{"kind":"k"}'


async def test_a_request_over_a_socket_is_answered(tmp_path: Path):
    async with serving(tmp_path) as served:
        answer = await exchange(port_of(served), GOOD)
        assert answer.startswith(b"HTTP/1.1 202 ")


async def test_the_worker_of_a_served_process_names_its_store(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "perdure.worker")
    async with serving(tmp_path, role="worker"), asyncio.timeout(PATIENCE):
        while not (told := [line for line in caplog.messages if " works for " in line]):
            await asyncio.sleep(0)
    assert f"works for {tmp_path / 'perdure.db'}:" in told[0]


async def test_half_requests_and_noise_end_with_a_problem(tmp_path: Path):
    async with serving(tmp_path, receive_timeout=0.3, header_max_bytes=2_000, header_max_count=20) as served:
        port = port_of(served)
        for sent, status in (
            (HEAD[:-20], b"408"),
            (HEAD + b"content-length: 100\r\n\r\n" + b'{"kind":', b"408"),
            (b"this is no http at all\r\n\r\n", b"400"),
            (b"GET / HTTP/1.1\r\nx: " + b"y" * 3_000, b"431"),
            (b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nx: " + b"y" * 3_000 + b"\r\n\r\n", b"431"),
            (b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 30 + b"\r\n", b"431"),
            (HEAD + b"content-length: 99999999\r\n\r\n", b"413"),
            (HEAD + b"content-length: 5\r\ncontent-length: 6\r\n\r\n", b"400"),
        ):
            answer = await exchange(port, sent)
            assert answer.startswith(b"HTTP/1.1 " + status), (sent[:60], answer)
            assert b"application/problem+json" in answer
        assert await exchange(port, b"") == b""
        assert (await exchange(port, GOOD)).startswith(b"HTTP/1.1 202")


async def test_a_sender_that_trickles_is_cut_off_at_a_fixed_time(tmp_path: Path):
    async with serving(tmp_path, receive_timeout=0.5) as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(served))
        writer.write(HEAD + b"content-length: 100000\r\n\r\n")
        answered = asyncio.create_task(reader.read())
        async with asyncio.timeout(PATIENCE):
            while not answered.done():
                writer.write(b" ")
                await asyncio.wait({answered}, timeout=0.05)
        assert answered.result().startswith(b"HTTP/1.1 408 ")
        writer.close()


async def test_one_connection_more_than_the_limit_is_told_to_come_again(tmp_path: Path):
    async with serving(tmp_path, connections=2) as served:
        port = port_of(served)
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        answer = await exchange(port, GOOD)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after" in answer
        for _, writer in held:
            writer.close()
            await writer.wait_closed()
        async with asyncio.timeout(PATIENCE):
            while not (await exchange(port, GOOD)).startswith(b"HTTP/1.1 202"):
                await asyncio.sleep(0.01)


async def test_a_blocked_loop_is_told_by_another_thread_and_then_it_is_ready_again(tmp_path: Path):
    async with serving(tmp_path) as served:
        port = port_of(served)
        await until_ready(port, 200)
        told, seen = threading.Event(), []

        def probe() -> None:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
            connection.request("GET", "/readyz")
            seen.append(connection.getresponse().status)
            connection.close()
            told.set()

        thread = threading.Thread(target=probe)
        blocked = threading.Event()
        blocked.wait(2.5)  # the loop stands still from here on: this is its own thread
        thread.start()
        assert told.wait(5), "nobody answered while the loop was blocked"
        thread.join()
        assert seen == [503]
        await until_ready(port, 200)


async def until_ready(port: int, status: int) -> None:
    wanted = f"HTTP/1.1 {status}".encode()
    async with asyncio.timeout(PATIENCE):
        while not (
            await exchange(port, b"GET /readyz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
        ).startswith(wanted):
            await asyncio.sleep(0.05)


async def test_a_long_log_is_told_beside_the_checks_and_work_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("perdure.store.sqlite.wal.LONG_BYTES", 1)
    async with serving(tmp_path) as served:
        port = port_of(served)
        await until_ready(port, 200)
        told = await exchange(port, b"GET /readyz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
        shown = json.loads(told.partition(b"\r\n\r\n")[2])
        assert (shown["status"], len(shown["notices"])) == ("ready", 1)
        assert "old snapshot" in shown["notices"][0]


async def test_a_worker_that_was_drained_is_told_beside_the_checks(tmp_path: Path):
    app = App(tmp_path / "perdure.db")
    async with serving(tmp_path, role="all") as served, app:
        port = port_of(served)
        await until_ready(port, 200)
        operations = await app.operations()
        async with asyncio.timeout(PATIENCE):
            while not (workers := await operations.views.workers(app.principal.organization, None)):
                await asyncio.sleep(0.01)
        await operations.order_worker(workers[0].id, WorkerOrder.DRAIN, app.principal)
        shown: dict[str, Any] = {"notices": []}
        async with asyncio.timeout(PATIENCE):
            while not shown["notices"]:
                told = await exchange(port, b"GET /readyz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
                shown = json.loads(told.partition(b"\r\n\r\n")[2])
        assert (shown["status"], "worker" in shown["checks"]) == ("ready", False)
        assert shown["notices"][0].startswith("the worker of this process has ended (drained)")


async def test_a_store_that_is_away_makes_the_process_not_ready_until_it_is_back(monkeypatch: pytest.MonkeyPatch):
    away = False

    async def probe() -> None:
        if away:
            raise StoreUnreachable("gone")

    monkeypatch.setitem(CHECK_SECONDS, "reads", 0.01)
    readiness = Readiness({"reads": probe}, SystemClock())
    readiness.start()
    try:
        for away in (False, True, False):
            async with asyncio.timeout(PATIENCE):
                while readiness.ready is away:
                    await asyncio.sleep(0)
    finally:
        await readiness.stop()


async def test_what_has_not_succeeded_for_long_is_not_ready():
    from perdure.testing import VirtualClock

    clock = VirtualClock()

    async def probe() -> None: ...

    readiness = Readiness({"reads": probe}, clock)
    await readiness.probing["reads"].ask()
    readiness.expect("duties")
    assert readiness.ready
    clock.move(31_000_000)
    await readiness.probing["reads"].ask()
    assert readiness.checks()["duties"] == "no success for 31 s"
    readiness.succeeded("duties")
    assert readiness.ready


async def test_stopping_answers_those_who_wait(tmp_path: Path):
    async with serving(tmp_path) as served:
        body = b'{"worker_id":"0198c5a4-7f3e-7abc-8def-000000000001","count":1,"wait":30,'
        body += b'"request_id":"0198c5a4-7f3e-7abc-8def-000000000002"}'
        head = b"POST /v1/worker/claim HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        request = head + b"content-length: %d\r\n\r\n" % len(body) + body
        waiting = asyncio.create_task(exchange(port_of(served), request))
        gateway: Any = served._gateway
        async with asyncio.timeout(PATIENCE):
            while not gateway._pool._lines:
                await asyncio.sleep(0)
        served.stop()
        answer = await asyncio.wait_for(waiting, PATIENCE)
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b'"leases":[]' in answer


async def test_all_roles_in_one_process_run_a_task_from_submit_to_result(tmp_path: Path):
    async with serving(tmp_path, "all") as served:
        app = served._app
        handle = await app.submit("sleep" if "sleep" in app.tasks else next(iter(app.tasks)), payload={"seconds": 0})
        await asyncio.wait_for(handle.wait(), PATIENCE)


@pytest.mark.parametrize("listen", ["0.0.0.0:80", "192.0.2.1:80", "[::]:80", "example.com:80"])
def test_an_address_that_others_can_reach_is_refused(listen: str):
    with pytest.raises(Misuse, match="no authentication"):
        check_listen(parse_listen(listen))


@pytest.mark.parametrize("listen", ["80", "host:", "host:port", ":80", "host:99999", "host:²", "host:٨٠", "host: 80"])
def test_what_is_no_address_is_refused(listen: str):
    with pytest.raises(Misuse, match="host:port"):
        parse_listen(listen)


def test_the_command_serves_and_ends_in_order(tmp_path: Path):
    with served_process(tmp_path, "all") as (process, url):
        port = int(url.rpartition(":")[2])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        connection.request("GET", "/healthz")
        assert connection.getresponse().read() == b'{"status":"ok"}'
        connection.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
