"""The ledger of this store: shared operations, and its own submission, claim, settle and renewal."""

from perdure.store.relational.ledger import RelationalLedger, Shapes
from perdure.store.sqlite import claiming, job_submission, renewing, settling, submission
from perdure.store.sqlite.readers import Readers
from perdure.store.sqlite.writer import Writer


class SqliteLedger(RelationalLedger):
    """Meets `store.ledger.Ledger`."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        shapes = Shapes(submission.submit, job_submission.submit_jobs, claiming.claim, settling.settle, renewing.renew)
        super().__init__(writer, readers, shapes)
