"""A gateway whose store is really away says so within seconds, says why, and is ready again when the store is back."""

import asyncio
import fcntl
import json
import os
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gateway.serving import PATIENCE, exchange, port_of, serving
from perdure.app.app import App
from perdure.gateway.access import Address
from perdure.serving import Serving
from perdure.settings import Settings
from skipping import skip

TOLD_WITHIN = 5.0
BUSY_MACHINE = 10.0
"""What a machine that is busy with other tests may need on top."""
DISK_BYTES = 4 * 1024 * 1024


class Told(NamedTuple):
    ready: bool
    checks: dict[str, str]


async def readiness(port: int) -> Told:
    answer = await exchange(port, b"GET /readyz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
    body: dict[str, Any] = json.loads(answer.partition(b"\r\n\r\n")[2])
    return Told(answer.startswith(b"HTTP/1.1 200"), body["checks"])


async def until(port: int, ready: bool) -> tuple[Told, float]:
    """What is told then, and after how many seconds."""
    began = time.monotonic()
    async with asyncio.timeout(PATIENCE):
        while (told := await readiness(port)).ready is not ready:
            await asyncio.sleep(0.05)
    return told, time.monotonic() - began


async def goes_away_and_comes_back(
    port: int, away: Callable[[], object], back: Callable[[], object], said: tuple[str, ...], reads: str = "ok"
) -> None:
    """Ready, then not ready with one of the things said of its writes, and this of its reads, then ready."""
    await until(port, True)
    away()
    try:
        told, seconds = await until(port, False)
        assert seconds <= TOLD_WITHIN + BUSY_MACHINE
        async with asyncio.timeout(TOLD_WITHIN + BUSY_MACHINE):
            while told.checks["reads"] != reads or told.checks["writes"] not in said:
                await asyncio.sleep(0.05)
                told = await readiness(port)
    finally:
        back()
    told, _ = await until(port, True)
    assert told.checks["writes"] == "ok"


async def submit(port: int, payload_bytes: int = 0) -> bytes:
    return await post(port, "/v1/tasks", b'{"kind":"k","payload":"%s"}' % (b"x" * payload_bytes))


async def post(port: int, path: str, body: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\nconnection: close\r\n"
    return await exchange(port, head.encode() + b"content-length: %d\r\n\r\n" % len(body) + body)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


async def test_the_folder_is_moved_away(folder: Path):
    elsewhere = folder.with_name("elsewhere")
    async with serving(folder) as served:
        await goes_away_and_comes_back(
            port_of(served),
            lambda: folder.rename(elsewhere),
            lambda: elsewhere.rename(folder),
            ("store_unreachable",),
            reads="store_unreachable",
        )


async def test_the_file_is_replaced(folder: Path):
    file = folder / "perdure.db"
    own = file.with_name("own.db")

    def replace() -> None:
        file.rename(own)
        file.write_bytes(b"")

    async with serving(folder) as served:
        await goes_away_and_comes_back(
            port_of(served),
            replace,
            lambda: own.replace(file),
            ("store_unreachable",),
            reads="store_unreachable",
        )


async def test_another_process_keeps_the_lock(folder: Path):
    app = App(folder / "perdure.db", settings=Settings(busy_timeout=0.5))
    served = Serving(app, "gateway", Address("127.0.0.1", 0))
    running = asyncio.create_task(served.run())
    await asyncio.wait_for(served.listening.wait(), PATIENCE)
    [lock] = folder.glob("*-lock")
    descriptor = os.open(lock, os.O_RDWR)
    try:
        await goes_away_and_comes_back(
            port_of(served),
            lambda: fcntl.flock(descriptor, fcntl.LOCK_EX),
            lambda: fcntl.flock(descriptor, fcntl.LOCK_UN),
            ("store_busy", "it did not answer within 2 s"),
        )
    finally:
        os.close(descriptor)
        served.stop()
        await asyncio.wait_for(running, PATIENCE)
        await app.close()


@pytest.fixture
async def small_disk(tmp_path: Path) -> AsyncIterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(disk)]
    done = subprocess.run(["mount", *options], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        skip(f"a small disk cannot be mounted here: {done.stderr.strip()}")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


async def test_the_disk_is_full(small_disk: Path):
    ballast = small_disk / "ballast"

    def fill() -> None:
        with ballast.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 65_536)
            except OSError:
                pass

    async with serving(small_disk) as served:
        port = port_of(served)
        await goes_away_and_comes_back(port, fill, ballast.unlink, ("store_full",))
        assert (await submit(port)).startswith(b"HTTP/1.1 202")


async def test_work_that_is_refused_for_lack_of_room_makes_it_not_ready_though_a_small_write_fits(small_disk: Path):
    ballast = small_disk / "ballast"
    async with serving(small_disk) as served:
        port = port_of(served)
        await until(port, True)
        free = shutil.disk_usage(small_disk).free
        ballast.write_bytes(b"x" * (free - 32_768))
        async with asyncio.timeout(PATIENCE):
            while not (refused := await submit(port, 20_000)).startswith(b"HTTP/1.1 507"):
                pass
        assert b"retry-after: 1\r\n" in refused
        problem = json.loads(refused.partition(b"\r\n\r\n")[2])
        assert "disk of the store is full" in problem["detail"]
        assert str(small_disk) not in json.dumps(problem)

        told, seconds = await until(port, False)
        assert told.checks["writes"] == "store_full"
        assert seconds <= TOLD_WITHIN + BUSY_MACHINE
        await asyncio.sleep(3)
        assert not (await readiness(port)).ready, "it is ready again, and there is no room"
        ballast.unlink()
        await until(port, True)
        assert (await submit(port, 20_000)).startswith(b"HTTP/1.1 202")


async def test_one_request_that_is_too_large_for_the_disk_leaves_it_ready(small_disk: Path):
    tasks = [{"kind": "k", "name": f"t{n}", "payload": "x" * 200_000} for n in range(15)]
    too_large = json.dumps({"name": "j", "tasks": tasks}).encode()
    async with serving(small_disk) as served:
        port = port_of(served)
        await until(port, True)
        free = shutil.disk_usage(small_disk).free
        (small_disk / "ballast").write_bytes(b"x" * (free - 600_000))
        for _ in range(3):
            answer = await post(port, "/v1/jobs", too_large)
            assert answer.startswith(b"HTTP/1.1 507"), answer
            ends = time.monotonic() + 1
            while time.monotonic() < ends:
                assert (await readiness(port)).ready
                await asyncio.sleep(0.02)
        assert (await submit(port)).startswith(b"HTTP/1.1 202")
