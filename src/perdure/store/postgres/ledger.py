"""The ledger of this store: shared operations, and its own submission, claim, settle and renewal."""

from collections.abc import Callable
from typing import Any

from perdure.ambient import SystemClock
from perdure.store.ledger import Swept
from perdure.store.postgres import growing, job_submission, renewing, settling, submission
from perdure.store.postgres.claiming import Claims
from perdure.store.postgres.folding import Folds
from perdure.store.relational import sweeping
from perdure.store.relational.flow import announcing
from perdure.store.relational.ledger import RelationalLedger, Shapes
from perdure.store.relational.operation import Writer
from perdure.store.relational.views import Readers


class PostgresLedger(RelationalLedger):
    """Meets `store.ledger.Ledger`.

    Changes of counts are folded on the way by `claim` and, for stores where nobody claims, by `promote`: by whichever
    comes first when it is time.
    """

    def __init__(self, writer: Writer, readers: Readers, remind: Callable[[int], None]) -> None:
        self._folds = Folds(SystemClock())
        claims = Claims(folds=self._folds, remind=remind)
        shapes = Shapes(
            submission.submit,
            job_submission.submit_jobs,
            claims.claim,
            announcing(settling.settle, claims),
            renewing.renew,
            growing.grow,
        )
        super().__init__(writer, readers, shapes)

    async def promote(self, limit: int) -> Swept:
        """As everywhere. Changes of counts are folded on the way, if it is time."""

        def act(tx: Any) -> Swept:
            self._folds.fold_if_time(tx)
            return sweeping.promote(tx, limit)

        return await self._act(act)
