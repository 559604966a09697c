"""The statements of the hot path in a store of ten million tasks: they go by an index, and read few pages.

Made once, by the server itself: some 12 GB in the folder of temporary files. `PERDURE_TEST_ROWS` says how many tasks
instead.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backends.postgres.crew import Watched, Writer, job, nodes, settlings
from backends.postgres.opened import plain
from perdure.domain.outcome import Failure
from perdure.domain.settlement import Settlement
from perdure.store.ledger import ClaimRequest
from perdure.store.postgres import settling, submission
from servers.postgres import NoServer, running
from skipping import skip

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_600)]

TASKS = int(os.environ.get("PERDURE_TEST_ROWS", "10000000"))
BYTES_A_TASK = 1_500
LATER = Settlement.retry(Failure("ValueError", "boom", None), 60_000_000)
SMALL = {"perdure_lanes", "perdure_definitions", "perdure_meta", "perdure_workers"}
ITEMS = 24
PAGES_MAX = 150 * ITEMS
"""Pages that one statement may read or change for so many tasks, in a store of whatever size."""


@pytest.fixture(scope="module")
def crowded() -> Iterator[str]:
    """The URL of a store with that many tasks, whose statistics are current."""
    from servers.databases import migrate

    needed = TASKS * BYTES_A_TASK
    free = shutil.disk_usage(tempfile.gettempdir()).free
    if free < 2 * needed:
        skip(f"{TASKS} tasks need {2 * needed >> 30} GB in {tempfile.gettempdir()}, and {free >> 30} are free")
    crowd = Path(__file__).with_name("crowd.sql").read_text().replace(":tasks", str(TASKS))
    try:
        with running(maintenance_work_mem="256MB", shared_buffers="512MB", max_wal_size="8GB") as server:
            url = server.url("postgres")
            migrate(url)
            with plain(url) as connection:
                connection.execute("SET synchronous_commit = off")
                connection.execute(crowd.encode())
                connection.execute("VACUUM ANALYZE")
            yield url
    except NoServer as reason:
        skip(str(reason))


@pytest.fixture(scope="module")
def plans(crowded: str) -> Iterator[dict[str, dict[str, Any]]]:
    """What each hot statement did when it was run once more."""
    writer = Writer(crowded)
    writer.register(kinds=("kind-1", "kind-2", "work"), queues=("queue-1", "queue-2", "default"))
    graph = {"a": [], "b": [], "c": ["a", "b"]}
    writer.submit_jobs([job(writer.ids, graph) for _ in range(2)])
    writer.submit(writer.tasks(10, priority=9))
    writer.claim(1)
    tx = Watched(writer.session.connection, writer.session.begin(durable=False))
    submission.submit(tx, writer.tasks(ITEMS), writer.lanes)
    made = {"submit": tx.plan("submit")}
    leases = writer.claims.claim(tx, [ClaimRequest("w", writer.leases(ITEMS))], writer.lanes)[0]
    assert len(leases) == ITEMS
    made |= {name: tx.plan(name, analyze=True) for name in tx.given if name.startswith("claim")}
    (*most, last) = leases
    settling.settle(tx, settlings(most))
    settling.settle(tx, settlings([last], LATER))
    made |= {name: tx.plan(name) for name in tx.given if name.startswith(("settle", "job", "children"))}
    writer.session.roll_back()
    yield made
    writer.close()


def test_each_goes_by_an_index(plans: dict[str, dict[str, Any]]) -> None:
    assert {"submit", "claim", "settle_end", "settle_return"} <= plans.keys()
    for name, plan in plans.items():
        for node in nodes(plan):
            relation = node.get("Relation Name", "")
            if relation and node["Node Type"] != "ModifyTable" and relation not in SMALL:
                assert node["Node Type"] in ("Index Scan", "Index Only Scan"), (name, node)


def test_claims_read_few_pages(plans: dict[str, dict[str, Any]], record_property: Any) -> None:
    read = {
        name: plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] for name, plan in plans.items() if "claim" in name
    }
    record_property("told", f"{TASKS:,} tasks, pages read for {ITEMS}: {read}")
    assert max(read.values()) <= PAGES_MAX, read
