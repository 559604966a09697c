"""The ledger of this store: shared operations, and its own submission, claim, settle and renewal."""

from perdure.store.relational.ledger import RelationalLedger, Shapes
from perdure.store.sqlite import claiming, growing, job_submission, renewing, settling
from perdure.store.sqlite.lone_submission import LoneSubmission
from perdure.store.sqlite.readers import Readers
from perdure.store.sqlite.writer import Writer


class SqliteLedger(RelationalLedger):
    """Meets `store.ledger.Ledger`."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        shapes = Shapes(
            LoneSubmission().submit,
            job_submission.submit_jobs,
            claiming.claim,
            settling.settle,
            renewing.renew,
            growing.grow,
        )
        super().__init__(writer, readers, shapes)
