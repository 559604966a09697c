"""Workers: what they say of themselves, and what operators want of them."""

from collections.abc import Sequence
from typing import Any

from perdure.errors import NotFound
from perdure.store.ledger import WorkerInfo, WorkerOrder
from perdure.store.relational.transaction import Transaction, batch
from perdure.store.wakeups import Topic


def register(tx: Transaction, worker: WorkerInfo) -> WorkerOrder:
    """Keep a worker's account of itself."""
    ordered = tx.value(
        "worker_register",
        id=worker.id,
        name=worker.name,
        host=worker.host,
        pid=worker.pid,
        version=worker.version,
        build=worker.build,
        kinds=batch(worker.kinds),
        queues=batch(worker.queues),
        organizations=batch(worker.organizations),
        capabilities=batch(worker.capabilities),
        capacity=worker.capacity,
    )
    return WorkerOrder(ordered)


def heartbeat(tx: Transaction, worker_id: str, capacity: int) -> WorkerOrder:
    """Note that a worker is there."""
    ordered = tx.value("worker_seen", id=worker_id, capacity=capacity)
    return WorkerOrder.REVOKE if ordered is None else WorkerOrder(ordered)


def seen(tx: Transaction, worker_ids: Sequence[str]) -> list[WorkerOrder]:
    """Note that many workers are there."""
    return _orders(worker_ids, tx.run("workers_seen", batch=batch(worker_ids)))


def orders(tx: Transaction, worker_ids: Sequence[str]) -> list[WorkerOrder]:
    """What many workers are ordered."""
    return _orders(worker_ids, tx.run("workers_ordered", batch=batch(worker_ids)))


def _orders(worker_ids: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> list[WorkerOrder]:
    known = dict(rows)
    return [WorkerOrder(known.get(each, WorkerOrder.REVOKE)) for each in worker_ids]


def leave(tx: Transaction, worker_id: str) -> None:
    """Note that a worker is gone for good."""
    tx.run("worker_leave", id=worker_id)


def order(tx: Transaction, organization: str, worker_id: str, ordered: WorkerOrder, actor: str) -> None:
    """Keep an operator's order to a worker that serves the operator's organization."""
    if tx.value("worker_order", organization=organization, id=worker_id, ordered=ordered, actor=actor) is None:
        raise NotFound(f"there is no worker {worker_id}", what="worker", id=worker_id)
    tx.announce(Topic.CONTROL | Topic.READY)
