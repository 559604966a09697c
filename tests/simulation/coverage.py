"""What the runs have reached: moves of the lifecycle, crash sites, faults, feats."""

from collections import Counter
from collections.abc import Iterable

from perdure.domain.transitions import TABLE
from perdure.store.ledger import Ledger

NOT_CALLED = {
    "holding": "asked only where no lease is shorter than a quiet minute, and here some are",
    "orders": "only gateways ask for many workers at once",
    "stand_by": "it asks for nothing by itself: it travels with the commit of another verb",
    "seen": "only gateways ask for many workers at once",
}
"""Verbs that nobody calls in a simulated life, with the reason."""

VERBS: tuple[str, ...] = tuple(name for name in dir(Ledger) if not name.startswith("_"))
"""Every verb of the ledger, whichever of its parts says it."""

SITES: tuple[str, ...] = (*(name for name in VERBS if name not in NOT_CALLED), "put", "fire")
"""The verbs of the ledger, and those of definitions and schedules that write."""

CRASHES: tuple[tuple[str, str], ...] = tuple((site, when) for site in SITES for when in ("before", "after"))

FAULTS = (
    "killed",
    "stopped longer than a lease",
    "crashed before a call",
    "crashed after a commit",
    "crashed by a handler",
    "crashed between receipt and settle",
    "answer lost",
    "refused",
    "repeated at once",
    "repeated later",
    "slow before",
    "slow after",
    "clock runs fast",
    "clock runs slow",
    "wall clock stepped",
    "store's clock jumped",
    "machine restarted",
    "store away longer than a lease",
    "disk failed at a commit",
    "disk failed after a commit",
    "disk full at a commit",
    "hint lost",
    "worker revoked",
    "worker drained",
)

MOVES: tuple[tuple[str, str], ...] = tuple(
    (str(source) if source else "(none)", str(row.event)) for row in TABLE for source in row.sources
)

FEATS = (
    "a concurrency is full",
    "a rate is spent",
    "others waited for their turn in an order",
    "an order waited for a retry",
    "keys took turns",
    "cancel_newest: waiting",
    "cancel_running: held",
    "cancel_running: waiting",
    "the concurrency of a queue is full",
    "the rate of a queue is spent",
    "the concurrency of a organization is full",
    "the rate of a organization is spent",
    "organizations took turns",
    "a pause of a kind",
    "a pause of a organization",
    "reject: created",
    "reject: refused",
    "return_existing: existing",
    "throttle: existing",
    "replace: replaced",
    "replace: refused",
    "debounce: created",
    "debounce: debounced",
    "a redrive met the holder of its key",
    "a job met the holder of a key",
    "a job grew",
    "a job grew: all of it was there",
    "a task mapped items",
    "a growth met Conflict",
    "a growth met LeaseLost",
    "a job was run again",
    "a job was run again: what had been cancelled too",
    "a retry of a job was refused",
    "a breaker: too_many_failed",
    "a breaker: probe_failed",
    "a breaker: probes_passed",
    "a breaker let a probe through",
    "cancel by filter",
    "requeue by filter",
    "discard by filter",
    "purge by filter",
    "an act by filter only counted",
)
"""What has to happen in some life or other, so that what is promised of it is looked at."""


class Coverage:
    """Counts of what was reached."""

    def __init__(self) -> None:
        self.moves: Counter[tuple[str, str]] = Counter()
        self.crashes: Counter[tuple[str, str]] = Counter()
        self.faults: Counter[str] = Counter()
        self.feats: Counter[str] = Counter()
        self.facts: Counter[str] = Counter()
        """What else is worth telling: seeds, tasks, attempts, calls."""

    def add(self, other: "Coverage") -> None:
        """Count what another run has reached, too."""
        for name in ("moves", "crashes", "faults", "feats", "facts"):
            getattr(self, name).update(getattr(other, name))

    def missing(self) -> list[str]:
        """What was never reached."""
        return [
            *(f"{state} + {event}" for state, event in MOVES if not self.moves[state, event]),
            *(f"crash {when} {site}" for site, when in CRASHES if not self.crashes[site, when]),
            *(f"fault: {fault}" for fault in FAULTS if not self.faults[fault]),
            *(f"feat: {feat}" for feat in FEATS if not self.feats[feat]),
        ]

    def table(self) -> str:
        """All counts, for people."""
        lines = ["moves of the lifecycle (state, event)"]
        lines += _columns(f"{state} + {event}: {self.moves[state, event]}" for state, event in MOVES)
        lines += ["", "crashes (before the call / after its commit)"]
        lines += _columns(f"{site}: {self.crashes[site, 'before']} / {self.crashes[site, 'after']}" for site in SITES)
        lines += ["", "faults"]
        lines += _columns(f"{fault}: {self.faults[fault]}" for fault in FAULTS)
        lines += ["", "feats"]
        lines += _columns(f"{feat}: {count}" for feat, count in sorted(self.feats.items()) if count)
        lines += ["", "in all"]
        lines += _columns(f"{name}: {count}" for name, count in sorted(self.facts.items()))
        return "\n".join(lines)


def _columns(cells: Iterable[str]) -> list[str]:
    told = list(cells)
    return ["  " + "".join(f"{cell:<48}" for cell in told[at : at + 3]).rstrip() for at in range(0, len(told), 3)]
