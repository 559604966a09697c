"""What the runs have reached: moves of the lifecycle, crash sites, faults."""

from collections import Counter
from collections.abc import Iterable

from perdure.domain.transitions import TABLE
from perdure.store.ledger import Ledger

NOT_CALLED = {
    "grow": "no handler here adds tasks to its job",
    "grower": "no handler here adds tasks to its job",
    "holding": "asked only where no lease is shorter than a quiet minute, and here some are",
    "orders": "only gateways ask for many workers at once",
    "retry_job": "no client here runs a job again",
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

UNREACHABLE: dict[tuple[str, str], str] = {
    ("expired", "revive"): "only the retry of a job revives what expired, and no client here runs a job again",
}
"""Moves that no simulated life makes, with the reason."""


class Coverage:
    """Counts of what was reached."""

    def __init__(self) -> None:
        self.moves: Counter[tuple[str, str]] = Counter()
        self.crashes: Counter[tuple[str, str]] = Counter()
        self.faults: Counter[str] = Counter()
        self.facts: Counter[str] = Counter()
        """What else is worth telling: seeds, tasks, attempts, calls."""

    def add(self, other: "Coverage") -> None:
        """Count what another run has reached, too."""
        for name in ("moves", "crashes", "faults", "facts"):
            getattr(self, name).update(getattr(other, name))

    def missing(self) -> list[str]:
        """What was never reached."""
        return [
            *(f"{state} + {event}" for state, event in MOVES if not self._move(state, event)),
            *(f"crash {when} {site}" for site, when in CRASHES if not self.crashes[site, when]),
            *(f"fault: {fault}" for fault in FAULTS if not self.faults[fault]),
        ]

    def _move(self, state: str, event: str) -> bool:
        return bool(self.moves[state, event]) or (state, event) in UNREACHABLE

    def table(self) -> str:
        """All counts, for people."""
        lines = ["moves of the lifecycle (state, event)"]
        lines += _columns(f"{state} + {event}: {self.moves[state, event]}" for state, event in MOVES)
        lines += ["", "crashes (before the call / after its commit)"]
        lines += _columns(f"{site}: {self.crashes[site, 'before']} / {self.crashes[site, 'after']}" for site in SITES)
        lines += ["", "faults"]
        lines += _columns(f"{fault}: {self.faults[fault]}" for fault in FAULTS)
        lines += ["", "in all"]
        lines += _columns(f"{name}: {count}" for name, count in sorted(self.facts.items()))
        return "\n".join(lines)


def _columns(cells: Iterable[str]) -> list[str]:
    told = list(cells)
    return ["  " + "".join(f"{cell:<40}" for cell in told[at : at + 3]).rstrip() for at in range(0, len(told), 3)]
