"""Retry a job: run again what failed of it, with what was cancelled for that."""

from perdure.domain import ids
from perdure.engine.requests import Principal
from perdure.store.job_ledger import JobRetried
from perdure.store.ledger import Ledger


class RetryJob:
    """Runs again what failed of jobs."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def __call__(self, job_id: str, by: Principal) -> JobRetried:
        """How many tasks run again. Raises `NotFound`, and `Conflict` where nothing of the job failed."""
        return await self._ledger.retry_job(by.organization, ids.parse(job_id, "job"), by.name)
