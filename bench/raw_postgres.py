"""The limit: what PostgreSQL itself does on this machine, with a minimal table, no fence and no history."""

import random
import statistics
import threading
import time
from typing import Any

import psycopg

SCHEMA = """
DROP TABLE IF EXISTS queue;
CREATE TABLE queue (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, state smallint NOT NULL DEFAULT 0, payload bytea NOT NULL,
    attempt integer NOT NULL DEFAULT 0, lease timestamptz
);
CREATE INDEX queue_ready ON queue (id) WHERE state = 0;
"""
INSERT = "INSERT INTO queue (payload) VALUES (%s) RETURNING id"
INSERT_MANY = "INSERT INTO queue (payload) SELECT unnest(%s::bytea[]) RETURNING id"
CLAIM = """
WITH first AS MATERIALIZED (SELECT id FROM queue WHERE state = 0 ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED)
UPDATE queue SET state = 1, attempt = attempt + 1, lease = now() + interval '30 s'
FROM first WHERE queue.id = first.id RETURNING queue.id, queue.payload
"""
COMPLETE = "UPDATE queue SET state = 2 WHERE id = ANY(%s::bigint[]) AND state = 1"
ANNOUNCE = "WITH made AS (INSERT INTO queue (payload) VALUES (%s)) SELECT pg_notify('queue', '')"


def _open(url: str) -> psycopg.Connection[Any]:
    return psycopg.connect(url, autocommit=True, prepare_threshold=1)


def insert(url: str, tasks: int, batch: int, payload: bytes) -> float:
    """Rows a second, `batch` in each durable transaction."""
    with _open(url) as connection:
        connection.execute(SCHEMA)
        start = time.perf_counter()
        for _ in range(tasks // batch):
            if batch == 1:
                connection.execute(INSERT, [payload]).fetchall()
            else:
                connection.execute(INSERT_MANY, [[payload] * batch]).fetchall()
        return tasks / (time.perf_counter() - start)


def drain(url: str, tasks: int, batch: int, payload: bytes) -> float:
    """Rows claimed and completed a second, in two durable transactions for each batch."""
    insert(url, tasks, 1_000, payload)
    with _open(url) as connection:
        connection.execute("VACUUM ANALYZE queue")
        start = time.perf_counter()
        while claimed := [row[0] for row in connection.execute(CLAIM, [batch]).fetchall()]:
            connection.execute(COMPLETE, [claimed])
        return tasks / (time.perf_counter() - start)


def latency(url: str, samples: int) -> tuple[float, float]:
    """Milliseconds from the insert's call to its claim by a listener: p50 and p99."""
    with _open(url) as connection:
        connection.execute(SCHEMA)
    taken: list[float] = []
    listening, claimed = threading.Event(), threading.Event()
    listener = threading.Thread(target=_listen, args=(url, samples, taken, listening, claimed), daemon=True)
    listener.start()
    listening.wait()
    chance = random.Random(samples)
    with _open(url) as connection:
        for _ in range(samples):
            claimed.clear()
            connection.execute(ANNOUNCE, [str(time.monotonic_ns()).encode()])
            claimed.wait()
            time.sleep(chance.uniform(0.01, 0.03))
    listener.join()
    return middle_and_tail(taken)


def _listen(url: str, samples: int, taken: list[float], listening: threading.Event, claimed: threading.Event) -> None:
    """Claim what is announced. A claim needs no sync: what is lost with it is claimed again."""
    with _open(url) as connection, _open(url) as hearing:
        connection.execute("SET synchronous_commit = off")
        connection.execute(CLAIM, [1])
        hearing.execute("LISTEN queue")
        listening.set()
        while len(taken) < samples:
            for _ in hearing.notifies(stop_after=1):
                for _, payload in connection.execute(CLAIM, [1]).fetchall():
                    taken.append((time.monotonic_ns() - int(payload)) / 1e6)
                    claimed.set()


def middle_and_tail(values: list[float]) -> tuple[float, float]:
    """Median and 99th percentile."""
    ordered = sorted(values)
    return statistics.median(ordered), ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
