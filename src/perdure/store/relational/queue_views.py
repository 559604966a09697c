"""What can be read of queues and workers: counters and the heads of indexes, whatever has ended."""

from typing import Any, Protocol

import msgspec

from perdure.domain.policy import QueuePolicy
from perdure.store.relational.transaction import Transaction
from perdure.store.views import Overview, QueueView, WorkerView

_DEFAULTS = QueuePolicy()


class _Policy(msgspec.Struct):
    paused: bool = _DEFAULTS.paused
    dead_letters: bool = _DEFAULTS.dead_letters
    depth: int | None = _DEFAULTS.depth
    concurrency: int | None = _DEFAULTS.concurrency
    rate: int | None = _DEFAULTS.rate
    per: float | None = _DEFAULTS.per


class _Queues(msgspec.Struct):
    policies: list[tuple[str, _Policy]]
    counts: list[tuple[str, str, int]]
    oldest: list[tuple[str, int]]
    missing: list[tuple[str, str]]


_decode_queues = msgspec.json.Decoder(_Queues).decode
_decode_workers = msgspec.json.Decoder(list[WorkerView]).decode
_decode_overview = msgspec.json.Decoder(Overview).decode


class Ask(Protocol):
    """How a statement is asked that looks for the first tasks of lanes: its one value, a JSON document."""

    def __call__(self, tx: Transaction, name: str, /, **bindings: Any) -> str:
        """The answer of the named statement."""


def _plainly(tx: Transaction, name: str, /, **bindings: Any) -> str:
    answer: str = tx.value(name, **bindings)
    return answer


def queues(tx: Transaction, organization: str, active_us: int, ask: Ask = _plainly) -> list[QueueView]:
    """Queues that hold something or have a policy, by name."""
    found = _decode_queues(ask(tx, "view_queues", organization=organization, active=active_us))
    policies = dict(found.policies)
    oldest = dict(found.oldest)
    counts: dict[str, dict[str, int]] = {}
    for queue, state, tasks in found.counts:
        counts.setdefault(queue, {})[state] = tasks
    missing: dict[str, list[str]] = {}
    for queue, kind in found.missing:
        missing.setdefault(queue, []).append(kind)
    views: list[QueueView] = []
    for name in sorted({*policies, *counts}):
        policy = policies.get(name) or _Policy()
        view = QueueView(
            name=name,
            paused=policy.paused,
            dead_letters=policy.dead_letters,
            depth=policy.depth,
            concurrency=policy.concurrency,
            rate=policy.rate,
            per=policy.per,
            counts=counts.get(name, {}),
            oldest_queued_us=oldest.get(name),
            missing_kinds=tuple(missing.get(name, ())),
        )
        views.append(view)
    return views


def workers(tx: Transaction, organization: str, active_us: int | None) -> list[WorkerView]:
    """Workers that serve the organization and were seen within `active_us`, last seen first; all when `None`."""
    since_us = 0 if active_us is None else tx.now_us - active_us
    return _decode_workers(tx.value("view_workers", organization=organization, since=since_us))


def overview(tx: Transaction, organization: str, active_us: int, ask: Ask = _plainly) -> Overview:
    """Counts, oldest and totals."""
    return _decode_overview(ask(tx, "view_overview", organization=organization, active=active_us))
