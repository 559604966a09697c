"""Submit tasks: check each, fill in what was not said, store them in few writes."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, cast

from perdure.ambient import Clock, Ids
from perdure.domain import limits
from perdure.domain.task import Task
from perdure.engine.build_task import TaskBuilder, Template
from perdure.engine.engine_settings import EngineSettings
from perdure.engine.kinds import Kind, Kinds, Names
from perdure.engine.requests import Principal, TaskRequest
from perdure.errors import Invalid, Misuse, PerdureError, Refused
from perdure.store.caller import CallerTransactions
from perdure.store.ledger import Ledger, Submitted

Answer = Submitted | PerdureError

STRETCH = 1_000
"""How many tasks are built at a time and then written: each write costs a sync, and building holds the loop up."""
TEMPLATES_MAX = 1_000
"""Kinds are names that callers make up: no more of them are remembered."""


class Submit:
    """Submits tasks that have no job."""

    def __init__(
        self, ledger: Ledger, kinds: Kinds, names: Names, ids: Ids, clock: Clock, settings: EngineSettings
    ) -> None:
        self._ledger = ledger
        self._kinds = kinds
        self._names = names
        self._ids = ids
        self._clock = clock
        self._settings = settings
        self._templates: dict[str, Template] = {}
        """What the last caller's tasks have in common, for as long as the kinds are not read anew."""
        self._templates_by: Principal | None = None
        self._templates_known: Mapping[str, Kind] | None = None

    def builder(self, by: Principal, known: Mapping[str, Kind], count: int = 0) -> TaskBuilder:
        """Builds the tasks of one call, `count` of them if that is known."""
        templates = self._templates
        if by != self._templates_by or known is not self._templates_known or len(templates) > TEMPLATES_MAX:
            templates = self._templates = {}
            self._templates_by, self._templates_known = by, known
        limit = self._settings.payload_max_bytes
        return TaskBuilder(by, known, self._kinds, self._names, self._ids, self._clock, limit, templates, count)

    async def __call__(self, requests: Sequence[TaskRequest], by: Principal) -> list[Answer]:
        """One answer per request, in order. A refused request does not touch the others."""
        if not requests:
            return []
        _check_count(requests)
        known = self._kinds.fresh(by.organization) or await self._kinds.of(by.organization)
        if len(requests) == 1:
            # Without what only pays for many.
            try:
                task = self.builder(by, known).build(requests[0])
            except Refused as refusal:
                return [refusal]
            return await self._ledger.submit((task,))
        if len(requests) <= STRETCH:
            answers, tasks = self._build(requests, by, known)
            return _filled(answers, await self._ledger.submit(tasks) if tasks else [])
        return await self._in_stretches(requests, by, known)

    async def _in_stretches(
        self, requests: Sequence[TaskRequest], by: Principal, known: Mapping[str, Kind]
    ) -> list[Answer]:
        """Let the store write one stretch while the next is built, and others use the event loop in between."""
        builder = self.builder(by, known, len(requests))
        answers: list[list[Answer | None]] = []
        async with asyncio.TaskGroup() as writing:
            stored: list[asyncio.Task[list[Answer] | Exception]] = []
            for start in range(0, len(requests), STRETCH):
                told, tasks = _build(builder, requests[start : start + STRETCH])
                answers.append(told)
                stored.append(writing.create_task(self._store(tasks)))
                await asyncio.sleep(0)
        found = _shared([each.result() for each in stored], [told.count(None) for told in answers])
        return [answer for told, each in zip(answers, found, strict=True) for answer in _filled(told, each)]

    async def _store(self, tasks: Sequence[Task]) -> list[Answer] | Exception:
        try:
            return await self._ledger.submit(tasks) if tasks else []
        except Exception as error:
            return error

    def within(
        self, caller: CallerTransactions | None, connection: Any, requests: Sequence[TaskRequest], by: Principal
    ) -> list[Answer]:
        """Submit inside the caller's own transaction, on the caller's thread. Kinds are as they were last read."""
        if caller is None:
            raise _not_within()
        _check_count(requests)
        answers, tasks = self._build(requests, by, self._kinds.at_hand(by.organization))
        stored = caller.submit(connection, tasks) if tasks else []
        return _filled(answers, stored)

    async def within_async(
        self, caller: CallerTransactions | None, connection: Any, requests: Sequence[TaskRequest], by: Principal
    ) -> list[Answer]:
        """As `within`, through any connection, without holding the event loop up."""
        if caller is None:
            raise _not_within()
        _check_count(requests)
        answers, tasks = self._build(requests, by, self._kinds.at_hand(by.organization))
        stored = await caller.lend(connection, lambda lent: caller.submit(lent, tasks)) if tasks else []
        return _filled(answers, stored)

    def _build(
        self, requests: Sequence[TaskRequest], by: Principal, known: Mapping[str, Kind]
    ) -> tuple[list[Answer | None], Sequence[Task]]:
        return _build(self.builder(by, known, len(requests)), requests)


def _not_within() -> Misuse:
    return Misuse("this store cannot submit inside a transaction of yours: submit after it has committed")


def _check_count(requests: Sequence[TaskRequest]) -> None:
    if len(requests) > limits.SUBMIT_MAX_TASKS:
        raise Invalid(
            f"one submit takes {limits.SUBMIT_MAX_TASKS:,} tasks at most, not {len(requests):,}: split it",
            field="tasks",
        )


def _build(builder: TaskBuilder, requests: Sequence[TaskRequest]) -> tuple[list[Answer | None], Sequence[Task]]:
    """The refusals in their places, and the tasks of the others."""
    answers: list[Answer | None] = [None] * len(requests)
    alike = builder.build_plain(requests)
    if alike is not None:
        return answers, alike
    tasks: list[Task] = []
    for place, request in enumerate(requests):
        try:
            tasks.append(builder.build(request))
        except Refused as refusal:
            answers[place] = refusal
    return answers, tasks


def _shared(stored: Sequence[list[Answer] | Exception], counts: Sequence[int]) -> list[list[Answer]]:
    """An answer for each task. What kept a stretch from being stored is raised where it kept all of them."""
    errors = [each for each in stored if isinstance(each, Exception)]
    defects = [each for each in errors if not isinstance(each, PerdureError)]
    if defects or (errors and not any(each for each in stored if isinstance(each, list))):
        raise (defects or errors)[0]
    return [
        [each] * count if isinstance(each, PerdureError) else cast(list[Answer], each)
        for each, count in zip(stored, counts, strict=True)
    ]


def _filled(answers: list[Answer | None], stored: Sequence[Answer]) -> list[Answer]:
    """The answers of the store, put where no refusal stands."""
    if len(stored) == len(answers):
        return list(stored)
    rest = iter(stored)
    return [next(rest) if answer is None else answer for answer in answers]
