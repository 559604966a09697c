"""What a store can do beyond the core. Tests and the engine ask here, never for a store's class."""

from typing import NamedTuple


class Capabilities(NamedTuple):
    """The ways in which stores differ."""

    name: str
    push: bool
    """Other processes are told of changes without asking. Without it, wake-ups across processes poll."""
    caller_transactions: bool
    """Tasks can be submitted and attempts settled inside a transaction of the caller's own connection."""
    profiles: frozenset[str] = frozenset({"core"})
    """Which parts of the conformance suite hold: core, flow, tenancy."""
