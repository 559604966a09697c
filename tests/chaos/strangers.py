"""Cases in which requests are hostile, senders slow and clients greedy: others do not suffer, and nothing is stored."""

import asyncio
import contextlib
import gzip
import json
import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from chaos.arena import Arena
from chaos.crew import TESTS
from chaos.gateways import Serving, gateway_of

DEEP = 10_000
MEMORY_MAX_MB = 96.0
"""How much a gateway may grow over all of this."""
SLOW_SENDERS, IDLE = 500, 10_000
GOOD_SECONDS = 15.0
P99_GROWS_AT_MOST = 2.0
P99_FLOOR_MS = 20.0
"""Below this, twice is nothing that anybody notices."""


class Hostile(NamedTuple):
    """One request. `stored`: it is harmless after all, and then what is stored is what was sent."""

    name: str
    body: bytes
    headers: str = "content-type: application/json\r\n"
    path: str = "/v1/tasks"
    stored: bool = False


def corpus() -> Iterator[Hostile]:
    """Everything that somebody may try."""
    yield Hostile("10 MB", task(b'"' + b"x" * 10_000_000 + b'"'))
    yield Hostile("payload over its limit", task(b'"' + b"x" * 300_000 + b'"'))
    yield Hostile("deep arrays", task(b"[" * DEEP + b"]" * DEEP))
    yield Hostile("deep objects", task(b'{"a":' * DEEP + b"1" + b"}" * DEEP))
    yield Hostile("deep and never closed", b"[" * DEEP)
    yield Hostile("many keys", task(b"{" + b",".join(b'"%d":1' % each for each in range(300_000)) + b"}"))
    for name, value in {
        "NaN": b"NaN",
        "infinity": b"-Infinity",
        "1e400": b"1e400",
        "5,000 digits": b"9" * 5_000,
        "bad UTF-8": b'"\xff\xfe"',
        "cut UTF-8": b'"\xe2\x82"',
        "overlong UTF-8": b'"\xc0\xaf"',
        "lone surrogate": b'"\\ud800"',
        "raw control": b'"\x01"',
        "trailing comma": b"[1,]",
        "two values": b"1 2",
        "a comment": b"1 /* no */",
    }.items():
        yield Hostile(name, task(value))
    yield Hostile("NUL in the payload", task(b'"\\u0000"'), stored=True)
    yield Hostile("duplicate keys in the payload", task(b'{"a":1,"a":2}'))
    yield Hostile(
        "a long text in another script", task(json.dumps("\u05e9\u05dc\u05d5\u05dd" * 5_000).encode()), stored=True
    )
    yield Hostile("duplicate kinds", b'{"kind":"a","kind":"b\\u0000"}')
    for name, kind in {
        "NUL": "a\x00b",
        "empty": "",
        "long": "k" * 10_000,
        "right to left": "\u202ekind",
        "newline": "a\nb",
        "path": "../../etc/passwd\x00",
        "markup": "<script>alert(1)</script>",
    }.items():
        yield Hostile(f"kind: {name}", json.dumps({"kind": kind}).encode())
    for field, value in {
        "queue": "q" * 1_000,
        "labels": {"x": "\x00"},
        "metadata": "m" * 20_000,
        "idempotency_key": "k" * 300,
        "priority": 2**70,
        "delay": -1,
        "ttl": 1e300,
        "run_at": "0000-00-00T00:00:00Z",
        "max_attempts": -(2**63),
        "nobody_has_this": 1,
    }.items():
        yield Hostile(f"field: {field}", json.dumps({"kind": "k", field: value}).encode())
    bomb = gzip.compress(b" " * 50_000_000)
    yield Hostile("gzip bomb", bomb, "content-type: application/json\r\ncontent-encoding: gzip\r\n")
    yield Hostile("another type", b"kind=k", "content-type: application/x-www-form-urlencoded\r\n")
    yield Hostile("another charset", task(b"1"), "content-type: application/json; charset=utf-16\r\n")
    names = [{"name": "a", "kind": "k"}, {"name": "a", "kind": "k"}]
    yield Hostile("a job of two of a name", json.dumps({"name": "j", "tasks": names}).encode(), path="/v1/jobs")
    ring = [{"name": each, "kind": "k", "depends_on": [other]} for each, other in (("a", "b"), ("b", "a"))]
    yield Hostile("a job in a ring", json.dumps({"name": "j", "tasks": ring}).encode(), path="/v1/jobs")
    yield Hostile(
        "a job with a hidden name", json.dumps({"name": "\u202e", "tasks": names[:1]}).encode(), path="/v1/jobs"
    )


def task(payload: bytes) -> bytes:
    """A submit with this payload, as it is."""
    return b'{"kind":"probe","payload":%s}' % payload


async def hostile(arena: Arena) -> None:
    """Each of the corpus is refused with a coded 4xx and stores nothing, or is harmless and stored as it was sent."""
    async with gateway_of(arena) as serving:
        assert serving.member is not None
        await _send(serving, task(b"1"))
        before_mb, tasks = memory_mb(serving.member.pid), len(await arena.tasks())
        sent = list(corpus())
        for each in sent * (1 if arena.quick else 5):
            status, problem = await _send(serving, each.body, each.headers, each.path)
            stored = len(await arena.tasks())
            if status == 202 and each.stored:
                tasks += 1
                view = await (await arena.views()).task("default", problem["id"])
                kept = None if view is None or view.payload is None else json.loads(view.payload.data)
                said = json.loads(each.body)["payload"]
                arena.check(kept == said, f"{each.name}: stored as {str(kept)[:60]!r}")
            else:
                arena.check(400 <= status < 500 and problem.get("code"), f"{each.name}: {status} {str(problem)[:200]}")
            arena.check(stored == tasks, f"{each.name}: {stored - tasks} tasks were stored")
            tasks = stored
        grown = memory_mb(serving.member.pid) - before_mb
        arena.check(grown <= MEMORY_MAX_MB, f"the gateway grew by {grown:.0f} MB")
        status, _ = await _send(serving, b"", path="/readyz", method="GET")
        arena.check(status == 200, f"the gateway is not ready afterwards: {status}")
        arena.figure(requests=len(sent) * (1 if arena.quick else 5), grown_mb=grown)


async def _send(
    serving: Serving,
    body: bytes,
    headers: str = "content-type: application/json\r\n",
    path: str = "/v1/tasks",
    method: str = "POST",
) -> tuple[int, dict[str, Any]]:
    """The status and the body of the answer; it may come before all was sent."""
    head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{headers}content-length: {len(body)}\r\n\r\n".encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", serving.port)
    try:
        writer.write(head + body)
        async with asyncio.timeout(60):
            answer = await reader.readuntil(b"\r\n\r\n")
            fields = dict(line.lower().split(": ", 1) for line in answer.decode().split("\r\n")[1:] if ": " in line)
            told = await reader.readexactly(int(fields.get("content-length", "0")))
        return int(answer.split(b" ", 2)[1]), json.loads(told or b"{}")
    finally:
        writer.transport.abort()


def memory_mb(pid: int) -> float:
    """How much memory a process has."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1024 / 1024


async def slow_and_greedy(arena: Arena) -> None:
    """Hundreds of senders that trickle, thousands of connections that say nothing, one client that submits what it
    can: one that behaves well is answered as before, within twice the time.
    """
    slow, idle = (50, 500) if arena.quick else (SLOW_SENDERS, IDLE)
    seconds = 3.0 if arena.quick else GOOD_SECONDS
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    serving = Serving(arena)
    room = {"PERDURE_CONNECTIONS": str(slow + idle + 200), "PERDURE_LOG_LEVEL": "error"}
    serving.member = arena.crew.serve("gateway", serving.port, environ=room)
    await arena.until_async(lambda: _answers(serving), 60, "the gateway answers")
    alone = await _neighbour(serving, "good", seconds)
    before_mb = memory_mb(serving.member.pid)
    trickling = [asyncio.create_task(_trickle(serving)) for _ in range(slow)]
    held = [(await asyncio.open_connection("127.0.0.1", serving.port))[1] for _ in range(idle)]
    crowded = await _neighbour(serving, "good", seconds)
    grown = memory_mb(serving.member.pid) - before_mb
    beside: dict[str, float] = {"slow and idle connections": crowded}
    for what in ("flood", "lists"):
        greedy = asyncio.create_task(_neighbour(serving, what, seconds))
        beside[f"a client that sends {what}"] = await _neighbour(serving, "good", seconds)
        arena.figure(**{f"{what}_per_s": await greedy})
    for each in trickling:
        each.cancel()
    ended = await asyncio.gather(*trickling, return_exceptions=True)
    for writer in held:
        writer.transport.abort()
    broken = [each for each in ended if isinstance(each, Exception) and not isinstance(each, OSError | EOFError)]
    arena.check(not broken, f"unexpected: {broken[:3]}")
    arena.figure(p99_alone_ms=alone, grown_mb=grown, idle=idle, slow=slow)
    for name, p99 in beside.items():
        arena.figure(**{f"p99 beside {name} ms": p99})
        bound = max(P99_GROWS_AT_MOST * alone, P99_FLOOR_MS)
        arena.check(p99 <= bound, f"beside {name} the p99 is {p99:.1f} ms, alone it was {alone:.1f} ms")
    arena.check(grown * 1024 / (idle + slow) < 64, f"each connection costs {grown * 1024 / (idle + slow):.0f} KB")
    status, _ = await _send(serving, b"", path="/readyz", method="GET")
    arena.check(status == 200, f"the gateway is not ready afterwards: {status}")


async def _neighbour(serving: Serving, what: str, seconds: float) -> float:
    """What a client in a process of its own measures."""
    command = [sys.executable, "-m", "chaos.neighbours", what, str(serving.port), str(seconds)]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])}
    running = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, env=environ)
    output, _ = await asyncio.wait_for(running.communicate(), seconds + 90)
    if running.returncode != 0:
        raise AssertionError(f"the client that does {what} failed")
    return float(output)


async def _answers(serving: Serving) -> bool:
    with contextlib.suppress(OSError, EOFError):
        return (await _send(serving, b"", path="/readyz", method="GET"))[0] == 200
    return False


async def _trickle(serving: Serving) -> None:
    """Send a request byte by byte, again and again."""
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", serving.port)
        writer.write(b"POST /v1/tasks HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n")
        writer.write(b"content-length: 100000\r\n\r\n")
        with contextlib.suppress(OSError):
            while not reader.at_eof():
                writer.write(b" ")
                await writer.drain()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(reader.read(1), 1.0)
        writer.transport.abort()
