"""The ledger of this store: shared operations, and its own submission, claim, settle and renewal."""

from collections.abc import Callable
from typing import Any

from perdure.ambient import SystemClock
from perdure.domain.limits import SECOND_US
from perdure.store.ledger import Doubtful, Swept
from perdure.store.postgres import growing, job_submission, renewing, settling, submission
from perdure.store.postgres.claiming import Claims
from perdure.store.postgres.folding import Folds
from perdure.store.postgres.passed import Look, Passed
from perdure.store.relational import doubting, sweeping
from perdure.store.relational.flow import announcing
from perdure.store.relational.ledger import RelationalLedger, Shapes
from perdure.store.relational.operation import Writer
from perdure.store.relational.views import Readers

LOOKS_EVERY_US = 50_000
"""Duties look from the beginning that often where it is cheap. They do not run more often."""
STRAYS_EVERY_US = 60 * SECOND_US
"""Attempts of workers that have no row are looked for so rarely: nothing leaves any, and it reads all the dead ones."""


class PostgresLedger(RelationalLedger):
    """Meets `store.ledger.Ledger`.

    Changes of counts are folded on the way by `claim` and, for stores where nobody claims, by `promote`: by whichever
    comes first when it is time.
    """

    def __init__(self, writer: Writer, readers: Readers, remind: Callable[[int], None]) -> None:
        clock = SystemClock()
        self._folds = Folds(clock)
        # Of their own: claims that look all the time would never leave duties the look that they owe to a hint.
        self._due, self._overdue = (Passed(clock.monotonic_us, LOOKS_EVERY_US) for _ in range(2))
        self._monotonic_us = clock.monotonic_us
        self._strays_us = 0
        claims = Claims(clock, self._folds, remind)
        shapes = Shapes(
            submission.submit,
            job_submission.submit_jobs,
            claims.claim,
            announcing(settling.settle, claims),
            renewing.renew,
            growing.grow,
            submission.submit_lone,
        )
        super().__init__(writer, readers, shapes)

    async def promote(self, limit: int) -> Swept:
        """As everywhere. Changes of counts are folded on the way, if it is time."""

        def act(tx: Any) -> Swept:
            self._folds.fold_if_time(tx)
            look = self._due.look(tx)
            return _looked(look, sweeping.promote(tx, limit, look.since_us, look.answered))

        return await self._act(act)

    async def expire(self, limit: int) -> Swept:
        def act(tx: Any) -> Swept:
            look = self._overdue.look(tx)
            return _looked(look, sweeping.expire(tx, limit, look.since_us, look.answered))

        return await self._act(act)

    async def find_doubtful(self, limit: int) -> list[Doubtful]:
        now_us = self._monotonic_us()
        strays = now_us >= self._strays_us
        if strays:
            # Whether it succeeds or takes too long.
            self._strays_us = now_us + STRAYS_EVERY_US
        return await self._readers.read(lambda tx: doubting.find_doubtful(tx, limit, strays))


def _looked(look: Look, swept: Swept) -> Swept:
    """What a sweep has done, and when to run again."""
    look.found(swept.next_us)
    again_in_us = look.again_in_us
    return swept if again_in_us is None else swept._replace(quiet=False, again_in_us=again_in_us)
