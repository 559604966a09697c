"""Dead letters: run them again, mark them as done with, or remove them."""

from collections.abc import Sequence
from typing import Any

from perdure.domain import limits
from perdure.domain.task import Body
from perdure.engine import encoding
from perdure.engine.cancel import parse_ids
from perdure.engine.kinds import Kinds
from perdure.engine.requests import Principal
from perdure.errors import Invalid, PerdureError
from perdure.store.ledger import Ledger, Redrive


class DeadLetters:
    """What operators do with tasks that failed for good."""

    def __init__(self, ledger: Ledger, kinds: Kinds, payload_max_bytes: int) -> None:
        self._ledger = ledger
        self._kinds = kinds
        self._payload_max_bytes = payload_max_bytes

    async def redrive(
        self, task_ids: Sequence[str], by: Principal, payload: Any = None, *, rate: int | None = None
    ) -> list[PerdureError | str]:
        """Run failed tasks again under the same ids: the id, or why not (`NotFound`, `Conflict`, `Redacted`).

        `payload`, when it is not `None`, replaces theirs; where the kind of a task does not take it the answer is the
        `Invalid` of a submit, and the task stays as it is. With a `rate` they may be claimed one after the other, so
        many a second.
        """
        body: Body | None = None
        if payload is not None:
            body = encoding.body(payload, "payload", self._payload_max_bytes)
        checked = parse_ids(task_ids)
        if not checked:
            return []
        unfit = {} if body is None else await self._unfit(checked, by.organization, body)
        between_us = 0 if rate is None else limits.SECOND_US // rate
        fit = [each for each in checked if each not in unfit]
        redrives = [Redrive(by.organization, each, by.name, body, n * between_us) for n, each in enumerate(fit)]
        answers = iter(await self._ledger.redrive(redrives) if redrives else ())
        told = [unfit.get(each) or next(answers) for each in checked]
        return [
            answer if isinstance(answer, PerdureError) else task_id
            for task_id, answer in zip(checked, told, strict=True)
        ]

    async def _unfit(self, task_ids: Sequence[str], organization: str, payload: Body) -> dict[str, Invalid]:
        """The tasks whose kinds do not take a payload, each with the refusal that a submit would meet."""
        known = await self._kinds.of(organization)
        unfit: dict[str, Invalid] = {}
        for task_id, found in zip(task_ids, await self._ledger.kinds_of(organization, task_ids), strict=True):
            kind = None if found is None else known.get(found[0])
            if found is None or kind is None:
                # Whether there is such a task is told by who runs it again.
                continue
            try:
                kind.check_payload(payload.data, found[1])
            except Invalid as refusal:
                unfit[task_id] = refusal
        return unfit

    async def discard(self, task_ids: Sequence[str], by: Principal) -> list[bool]:
        """Mark dead letters as done with; false where it is none."""
        checked = parse_ids(task_ids)
        return await self._ledger.discard(by.organization, checked, by.name) if checked else []

    async def purge(self, task_ids: Sequence[str], by: Principal) -> list[bool]:
        """Remove dead letters for good; false where it is none, or its job is still open."""
        checked = parse_ids(task_ids)
        return await self._ledger.purge(by.organization, checked, by.name) if checked else []
