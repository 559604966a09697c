"""Parents' results are read only where a handler may look at them, and are missed only where it does."""

from typing import Any

import pytest

from perdure.domain.outcome import Failed, Succeeded
from perdure.domain.states import TaskState
from perdure.domain.task import Body
from perdure.errors import TooLarge
from perdure.store.ledger import ParentResult
from perdure.worker.context import Context, SyncContext
from perdure.worker.registry import Registry
from worker.conftest import StartWorker
from worker.scripted_source import ScriptedSource

LABELS = '{"labels":{"team":"a"}}'


async def quiet(n: int = 1) -> int:
    return n


async def says_its_name(*, ctx: Context) -> str:
    return ctx.kind


async def looks(*, ctx: Context) -> dict[str, Any]:
    return dict(ctx.parents)


def looks_at_states(*, ctx: SyncContext) -> dict[str, Any]:
    return dict(ctx.parent_states)


@pytest.fixture
def too_much(source: ScriptedSource) -> None:
    """The parents' results are more than a handler may be given."""

    async def inputs(hold: object) -> Any:
        source.calls["inputs"] += 1
        raise TooLarge("the results of the parents have 17 MiB: return less, or references")

    source.inputs = inputs  # type: ignore[method-assign]


async def test_nothing_is_read_for_a_handler_that_cannot_look(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    registry.add("quiet", quiet)
    lease = source.offer("quiet", parents=3, options=LABELS)
    start_worker()
    assert await source.ended(lease) == Succeeded(Body(b"1"))
    assert source.calls["inputs"] == 0


@pytest.mark.usefixtures("too_much")
async def test_results_that_cannot_be_had_do_not_matter_to_a_handler_that_does_not_look(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    registry.add("named", says_its_name)
    lease = source.offer("named", parents=3, options=LABELS)
    start_worker()
    assert await source.ended(lease) == Succeeded(Body(b'"named"'))


@pytest.mark.usefixtures("too_much")
@pytest.mark.parametrize(
    ("handler", "options"), [(looks, None), (looks_at_states, LABELS), (quiet, '{"bindings":{"n":"a"}}')]
)
async def test_a_handler_that_needs_results_that_cannot_be_had_fails_for_good(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker, handler: Any, options: str | None
) -> None:
    registry.add("needs", handler)
    lease = source.offer("needs", parents=3, options=options)
    start_worker()
    outcome = await source.ended(lease)
    assert isinstance(outcome, Failed)
    assert (outcome.permanent, outcome.reason) == (True, "bad_payload")
    assert "17 MiB: return less" in outcome.error.message
    assert source.calls["inputs"] == 1


async def test_a_field_whose_parent_is_not_there_fails_for_good(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    registry.add("quiet", quiet)
    lease = source.offer("quiet", parents=2, options='{"bindings":{"n":"a"}}')
    source.parents[lease.hold.task_id] = {"b": ParentResult(TaskState.SUCCEEDED, Body(b"2"))}
    start_worker()
    outcome = await source.ended(lease)
    assert isinstance(outcome, Failed)
    assert (outcome.permanent, outcome.reason) == (True, "bad_payload")
