"""The ledger of this store: shared operations, and its own submission, claim, settle and renewal."""

from perdure.store.relational.flow import announcing
from perdure.store.relational.ledger import RelationalLedger, Shapes
from perdure.store.sqlite import claiming, growing, job_submission, renewing, settling
from perdure.store.sqlite.alike_submission import alike_first
from perdure.store.sqlite.lone_submission import LoneSubmission
from perdure.store.sqlite.readers import Readers
from perdure.store.sqlite.writer import Writer


class SqliteLedger(RelationalLedger):
    """Meets `store.ledger.Ledger`."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        claims = claiming.Claims()
        shapes = Shapes(
            alike_first(LoneSubmission().submit),
            job_submission.submit_jobs,
            claims.claim,
            announcing(settling.settle, claims),
            renewing.renew,
            growing.grow,
        )
        super().__init__(writer, readers, shapes)
