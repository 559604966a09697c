"""The ledger of this store: shared operations, and its own submission, claim, settle and renewal."""

from perdure.store.postgres import claiming, job_submission, renewing, settling, submission
from perdure.store.relational.ledger import RelationalLedger, Shapes
from perdure.store.relational.operation import Writer
from perdure.store.relational.views import Readers


class PostgresLedger(RelationalLedger):
    """Meets `store.ledger.Ledger`."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        shapes = Shapes(
            submission.submit, job_submission.submit_jobs, claiming.Claims().claim, settling.settle, renewing.renew
        )
        super().__init__(writer, readers, shapes)
