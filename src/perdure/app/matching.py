"""Doing something to all tasks that have something in common, from a program."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypedDict

from perdure.app.handle import Access
from perdure.domain import ids
from perdure.domain.states import Reason
from perdure.engine.act_on_matching import Act, Matching
from perdure.store.views import TaskFilter
from perdure.wire.shapes import instant_us

STEP_MAX_TASKS = 500


class Which(TypedDict, total=False):
    """What all of the tasks have: of several values, any of them."""

    kinds: Sequence[str]
    queues: Sequence[str]
    labels: Mapping[str, str]
    job: str
    """The id of their job."""
    submitters: Sequence[str]


class WhichDeadLetters(Which, total=False):
    """What all of the dead letters have. The times are aware datetimes: ended from one on, and before the other."""

    reasons: Sequence[str]
    ended_from: datetime
    ended_before: datetime


async def act_on_all(
    access: Access,
    act: Act,
    which: Mapping[str, Any],
    *,
    dry_run: bool,
    rate: int | None = None,
    text: str | None = None,
) -> dict[str, int]:
    """Take all steps, no faster than `rate` tasks a second: how many tasks `matched`, and what became of them."""
    operations = await access.operations()
    size = STEP_MAX_TASKS if rate is None else min(STEP_MAX_TASKS, rate)
    asked = Matching(act, _filter(which), size, None, dry_run, rate, text)
    total: Counter[str] = Counter(matched=0)
    while True:
        step = await operations.act_on_matching(asked, access.principal)
        total.update(step.counts, matched=step.matched, **({"refused": len(step.refused)} if step.refused else {}))
        if step.cursor is None:
            return dict(total)
        asked = asked._replace(cursor=step.cursor)
        if rate is not None and not dry_run:
            await asyncio.sleep(step.matched / rate)


def _filter(which: Mapping[str, Any]) -> TaskFilter:
    job = which.get("job")
    return TaskFilter(
        kinds=tuple(which.get("kinds", ())),
        queues=tuple(which.get("queues", ())),
        job=None if job is None else ids.parse(job, "job", "job"),
        labels=tuple(which.get("labels", {}).items()),
        reasons=tuple(map(Reason, which.get("reasons", ()))),
        submitters=tuple(which.get("submitters", ())),
        ended_from_us=instant_us(which.get("ended_from")),
        ended_before_us=instant_us(which.get("ended_before")),
    )
