"""What a handler says that came of it goes with its result."""

from typing import Any

import pytest

from perdure.domain.limits import SUMMARY_MAX_BYTES
from perdure.domain.outcome import Failed, Succeeded, SucceededPartly
from perdure.domain.task import Body
from perdure.errors import Invalid
from perdure.worker.context import Context
from perdure.worker.registry import Registry
from perdure.worker.verdicts import Partly
from worker.conftest import StartWorker
from worker.scripted_source import ScriptedSource


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        (7, Succeeded(Body(b"7"), "3 of 4 rows")),
        (Partly(7), SucceededPartly(Body(b"7"), "3 of 4 rows")),
        (Partly(7, "its own"), SucceededPartly(Body(b"7"), "its own")),
    ],
)
async def test_the_last_summary_goes_with_the_result(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker, value: Any, outcome: Any
) -> None:
    async def count(*, ctx: Context) -> Any:
        ctx.summarize("0 of 4 rows")
        ctx.summarize("3 of 4 rows")
        return value

    registry.add("count", count)
    lease = source.offer("count")
    start_worker()
    assert await source.ended(lease) == outcome


@pytest.mark.parametrize("text", ["x" * (SUMMARY_MAX_BYTES + 1), 7])
async def test_a_summary_is_a_short_text(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker, text: Any
) -> None:
    async def count(*, ctx: Context) -> None:
        with pytest.raises(Invalid, match="summary"):
            ctx.summarize(text)
        raise ValueError("as meant")

    registry.add("count", count)
    lease = source.offer("count")
    start_worker()
    outcome = await source.ended(lease)
    assert isinstance(outcome, Failed)
    assert outcome.error.message == "as meant"
