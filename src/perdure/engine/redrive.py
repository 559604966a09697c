"""Dead letters: run them again, mark them as done with, or remove them."""

from collections.abc import Sequence
from typing import Any

from perdure.domain import limits
from perdure.domain.task import Body
from perdure.engine import encoding
from perdure.engine.cancel import parse_ids
from perdure.engine.requests import Principal
from perdure.errors import PerdureError
from perdure.store.ledger import Ledger, Redrive


class DeadLetters:
    """What operators do with tasks that failed for good."""

    def __init__(self, ledger: Ledger, payload_max_bytes: int) -> None:
        self._ledger = ledger
        self._payload_max_bytes = payload_max_bytes

    async def redrive(
        self, task_ids: Sequence[str], by: Principal, payload: Any = None, *, rate: int | None = None
    ) -> list[PerdureError | str]:
        """Run failed tasks again under the same ids: the id, or why not (`NotFound`, `Conflict`, `Redacted`).

        `payload`, when it is not `None`, replaces theirs. With a `rate` they may be claimed one after the other, so
        many a second.
        """
        body: Body | None = None
        if payload is not None:
            body = encoding.body(payload, "payload", self._payload_max_bytes)
        checked = parse_ids(task_ids)
        if not checked:
            return []
        between_us = 0 if rate is None else limits.SECOND_US // rate
        answers = await self._ledger.redrive(
            [Redrive(by.organization, each, by.name, body, place * between_us) for place, each in enumerate(checked)]
        )
        return [
            answer if isinstance(answer, PerdureError) else task_id
            for task_id, answer in zip(checked, answers, strict=True)
        ]

    async def discard(self, task_ids: Sequence[str], by: Principal) -> list[bool]:
        """Mark dead letters as done with; false where it is none."""
        checked = parse_ids(task_ids)
        return await self._ledger.discard(by.organization, checked, by.name) if checked else []

    async def purge(self, task_ids: Sequence[str], by: Principal) -> list[bool]:
        """Remove dead letters for good; false where it is none, or its job is still open."""
        checked = parse_ids(task_ids)
        return await self._ledger.purge(by.organization, checked, by.name) if checked else []
