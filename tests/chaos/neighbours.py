"""Clients beside each other, each in a process of its own: `python -m chaos.neighbours WHAT PORT SECONDS`.

`good` submits one task after the other with a pause, and writes the 99th percentile of what that took, in milliseconds.
`flood` submits single tasks on many connections as fast as it can, `lists` submits a thousand at a time; these two are
nice, so that what is measured is what they do to the gateway, not that they take the processor of the one who measures.
"""

import asyncio
import json
import os
import statistics
import sys
import time

from perdure.client.pool import Place, Pool

PAUSE_SECONDS = 0.01
FLOODING = 16
NICE = 10
HEAD = (
    b"POST /v1/tasks HTTP/1.1\r\nhost: 127.0.0.1\r\nperdure-client: %d\r\n" % os.getpid()
    + b"content-type: application/json\r\ncontent-length: %d\r\n\r\n"
)
ONE = {"kind": "probe", "payload": {"data": "x" * 100}}


async def post(pool: Pool, body: bytes) -> float:
    """Milliseconds until the answer, which must be a good one."""
    began = time.perf_counter()
    answer = await pool.ask(HEAD % len(body) + body, 30, 60)
    if answer.status != 202:
        raise SystemExit(f"answered {answer.status}: {answer.body[:200]!r}")
    return (time.perf_counter() - began) * 1_000


async def good(port: int, seconds: float) -> float:
    """The 99th percentile of a client that behaves well."""
    pool, body = Pool(Place("127.0.0.1", port, None), 1), json.dumps(ONE).encode()
    taken = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        taken.append(await post(pool, body))
        await asyncio.sleep(PAUSE_SECONDS)
    await pool.close()
    return statistics.quantiles(taken, n=100)[98]


async def flood(port: int, seconds: float, *, lists: bool) -> float:
    """Submit without a pause; how many tasks a second that were."""
    connections, many = (1, 1_000) if lists else (FLOODING, 1)
    pool = Pool(Place("127.0.0.1", port, None), connections)
    body = json.dumps([ONE] * many if lists else ONE).encode()
    until = time.monotonic() + seconds

    async def submit() -> int:
        tasks = 0
        while time.monotonic() < until:
            await post(pool, body)
            tasks += many
        return tasks

    done = await asyncio.gather(*(submit() for _ in range(connections)))
    await pool.close()
    return sum(done) / seconds


if __name__ == "__main__":
    what, where, how_long = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    if what != "good":
        os.nice(NICE)
    doing = good(where, how_long) if what == "good" else flood(where, how_long, lists=what == "lists")
    sys.stdout.write(f"{asyncio.run(doing):.3f}\n")
