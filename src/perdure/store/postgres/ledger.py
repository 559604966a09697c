"""The ledger of this store: shared operations, and its own submission, claim, settle and renewal."""

from typing import Any

from perdure.ambient import SystemClock
from perdure.store.ledger import Swept
from perdure.store.postgres import job_submission, renewing, settling, submission
from perdure.store.postgres.claiming import Claims
from perdure.store.postgres.folding import Folds
from perdure.store.relational import sweeping
from perdure.store.relational.ledger import RelationalLedger, Shapes
from perdure.store.relational.operation import Writer
from perdure.store.relational.views import Readers


class PostgresLedger(RelationalLedger):
    """Meets `store.ledger.Ledger`."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        claims = Claims()
        shapes = Shapes(submission.submit, job_submission.submit_jobs, claims.claim, settling.settle, renewing.renew)
        super().__init__(writer, readers, shapes)
        self._folds = Folds(SystemClock())

    async def promote(self, limit: int) -> Swept:
        """As everywhere. Counts are folded on the way, where there is a duty and nobody claims."""

        def act(tx: Any) -> Swept:
            self._folds.fold_if_time(tx)
            return sweeping.promote(tx, limit)

        return await self._act(act)
