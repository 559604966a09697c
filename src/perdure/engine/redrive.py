"""Dead letters: run them again, mark them as done with, or remove them."""

from collections.abc import Sequence
from typing import Any

from perdure.domain import limits
from perdure.domain.task import Body
from perdure.engine import encoding
from perdure.engine.cancel import parse_ids
from perdure.engine.edited_payload import options_with
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

        `payload`, when it is not `None`, replaces theirs, and makes unique keys and gates anew where these are by its
        fields. Where the kind of a task does not take it, or another task holds the new key, the answer is that of a
        submit (`Invalid`, `UniqueConflict`), and the task stays as it is. With a `rate` they may be claimed one after
        the other, so many a second.
        """
        body: Body | None = None
        if payload is not None:
            body = encoding.body(payload, "payload", self._payload_max_bytes)
        checked = parse_ids(task_ids)
        if not checked:
            return []
        options = {} if body is None else await self._options(checked, by.organization, body)
        between_us = 0 if rate is None else limits.SECOND_US // rate
        redrives: list[Redrive] = []
        for each in checked:
            made = options.get(each)
            if not isinstance(made, Invalid):
                redrives.append(Redrive(by.organization, each, by.name, body, len(redrives) * between_us, made))
        answers = iter(await self._ledger.redrive(redrives) if redrives else ())
        told = [made if isinstance(made := options.get(each), Invalid) else next(answers) for each in checked]
        return [
            answer if isinstance(answer, PerdureError) else task_id
            for task_id, answer in zip(checked, told, strict=True)
        ]

    async def _options(self, task_ids: Sequence[str], organization: str, payload: Body) -> dict[str, str | Invalid]:
        """The options of tasks with another payload, or the refusal that a submit would meet, where their kinds do not
        take it.
        """
        known = await self._kinds.of(organization)
        made: dict[str, str | Invalid] = {}
        for task_id, found in zip(task_ids, await self._ledger.specified(organization, task_ids), strict=True):
            if found is None:
                # Whether there is such a task is told by who runs it again.
                continue
            try:
                made[task_id] = options_with(payload, found, known.get(found.kind))
            except Invalid as refusal:
                made[task_id] = refusal
        return made

    async def discard(self, task_ids: Sequence[str], by: Principal) -> list[bool]:
        """Mark dead letters as done with; false where it is none."""
        checked = parse_ids(task_ids)
        return await self._ledger.discard(by.organization, checked, by.name) if checked else []

    async def purge(self, task_ids: Sequence[str], by: Principal) -> list[bool]:
        """Remove dead letters for good; false where it is none, or its job is still open."""
        checked = parse_ids(task_ids)
        return await self._ledger.purge(by.organization, checked, by.name) if checked else []
