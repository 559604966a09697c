"""A whole store: its protocols in one hand, and how it is opened and closed."""

from typing import Protocol

from perdure.store.caller import CallerTransactions
from perdure.store.capabilities import Capabilities
from perdure.store.definitions import Definitions
from perdure.store.ledger import Ledger
from perdure.store.schedules import Schedules
from perdure.store.schema import Schema
from perdure.store.views import Views
from perdure.store.wakeups import Wakeups


class Store(Protocol):
    """What the wiring opens and the engine works with."""

    @property
    def capabilities(self) -> Capabilities: ...
    @property
    def ledger(self) -> Ledger: ...
    @property
    def views(self) -> Views: ...
    @property
    def definitions(self) -> Definitions: ...
    @property
    def schedules(self) -> Schedules: ...
    @property
    def schema(self) -> Schema: ...
    @property
    def wakeups(self) -> Wakeups: ...
    @property
    def caller(self) -> CallerTransactions | None:
        """`None` unless `capabilities.caller_transactions`."""

    def notices(self) -> list[str]:
        """What whoever runs the store should know of, though it works: a sentence each. Asks nobody, so at any time."""

    async def prove_writes(self) -> bool:
        """True once a write went well and there is room for new work; false where that cannot be known.

        Raises what new work would be refused with: `StoreFull`, or another `Unavailable`.
        """

    async def close(self) -> None:
        """Finish the flush under way and let go of everything. Harmless when closed already."""
