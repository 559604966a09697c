"""Traces: what is submitted carries the context of its submit, each attempt begins a trace of its own with a link."""

import contextlib
import contextvars
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import perdure
from perdure.domain.attempt import Lease
from perdure.domain.outcome import Failed, Outcome, Succeeded
from perdure.engine.requests import TaskRequest
from perdure.testing import TestApp

GIVEN = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
under_way: contextvars.ContextVar[str] = contextvars.ContextVar("under_way", default="nothing")


@dataclass
class Recorded:
    name: str
    link: str | None
    outcomes: list[Outcome | None] = field(default_factory=list)

    def end(self, outcome: Outcome | None) -> None:
        self.outcomes.append(outcome)


class Recorder:
    """A tracer that keeps what it is told."""

    def __init__(self) -> None:
        self.submits: list[tuple[str, int, str]] = []
        self.runs: list[Recorded] = []

    @contextlib.contextmanager
    def submitting(self, kind: str, tasks: int) -> Iterator[str | None]:
        trace = f"00-{len(self.submits) + 1:032x}-{1:016x}-01"
        self.submits.append((kind, tasks, trace))
        yield trace

    def running(self, lease: Lease, trace: str | None) -> Recorded:
        run = Recorded(f"run {lease.kind}", trace)
        self.runs.append(run)
        under_way.set(run.name)
        return run


class Broken:
    """A tracer that cannot."""

    def submitting(self, kind: str, tasks: int) -> Any:
        raise RuntimeError("no")

    def running(self, lease: Lease, trace: str | None) -> Any:
        raise RuntimeError("no")


class BreaksAtTheEnd(Broken):
    """A tracer whose span cannot be ended."""

    @contextlib.contextmanager
    def submitting(self, kind: str, tasks: int) -> Iterator[str | None]:
        try:
            yield GIVEN
        finally:
            raise RuntimeError("the exporter is gone")


class Swallows(Broken):
    """A tracer whose span takes every error for its own."""

    @contextlib.contextmanager
    def submitting(self, kind: str, tasks: int) -> Iterator[str | None]:
        with contextlib.suppress(Exception):
            yield GIVEN


def app_with(tracer: Any, path: Path) -> perdure.App:
    app = perdure.App(path / "traces.db", tracer=tracer)

    @app.task("tell", max_attempts=2)
    async def tell(fail: bool = False, *, ctx: perdure.Context) -> list[str | None]:
        if fail:
            raise ValueError("as asked")
        return [ctx.trace, under_way.get()]

    @app.task("tell.plainly")
    def tell_plainly(*, ctx: perdure.SyncContext) -> list[str | None]:
        return [ctx.trace, under_way.get()]

    return app


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def app(recorder: Recorder, tmp_path: Path) -> perdure.App:
    return app_with(recorder, tmp_path)


@pytest.mark.parametrize("kind", ["tell", "tell.plainly"])
async def test_an_attempt_is_linked_to_its_submit_and_its_span_is_under_way_in_the_handler(
    app: perdure.App, recorder: Recorder, kind: str
) -> None:
    async with app, app.worker():
        told = await (await app.submit(kind)).result(10)
    [(submitted, tasks, trace)] = recorder.submits
    assert (submitted, tasks) == (kind, 1)
    assert told == [trace, f"run {kind}"]
    [run] = recorder.runs
    assert run.link == trace
    assert [type(each) for each in run.outcomes] == [Succeeded]
    assert under_way.get() == "nothing"


async def test_each_attempt_has_a_span_of_its_own_with_the_same_link(app: perdure.App, recorder: Recorder) -> None:
    async with app, app.worker():
        handle = await app.submit("tell", fail=True, retry=perdure.Retry(2, backoff="fixed", base=0.0, jitter=0))
        assert await handle.wait(10) == "dead_lettered"
    assert [(run.link, type(run.outcomes[0])) for run in recorder.runs] == [(recorder.submits[0][2], Failed)] * 2


async def test_a_trace_that_is_said_goes_before_the_submits_own(app: perdure.App) -> None:
    async with app, app.worker():
        assert (await (await app.submit("tell", trace=GIVEN)).result(10))[0] == GIVEN
        [handle] = await app.submit_many([TaskRequest(kind="tell", payload={}, trace=GIVEN)])
        assert (await handle.result(10))[0] == GIVEN


@pytest.mark.parametrize(
    "bad",
    [
        "nonsense",
        "",
        GIVEN.upper(),
        "ff" + GIVEN[2:],
        GIVEN.replace("0af7651916cd43dd8448eb211c80319c", "0" * 32),
        GIVEN.replace("b7ad6b7169203331", "0" * 16),
        GIVEN[:-1],
        GIVEN + "\n",
        GIVEN + "-" + "x" * 300,
    ],
)
async def test_a_trace_that_is_none_is_dropped_and_the_work_is_done(bad: str, tmp_path: Path) -> None:
    app = app_with(None, tmp_path)
    async with app, app.worker():
        assert (await (await app.submit("tell", trace=bad)).result(10))[0] is None


async def test_many_tasks_of_one_submit_share_its_span_and_so_do_the_tasks_of_a_job(
    app: perdure.App, recorder: Recorder
) -> None:
    async with app, app.worker():
        many = await app.submit_many([app.call("tell"), app.call("tell.plainly")])
        assert {(await each.result(10))[0] for each in many} == {recorder.submits[0][2]}
        with app.job("pair") as job:
            first = job.add("tell", name="first")
            job.add("tell", name="second", after=[first])
        handle = await job.submit()
        assert {each[0] for each in (await handle.result(10)).values()} == {recorder.submits[1][2]}
    assert [each[:2] for each in recorder.submits] == [("several", 2), ("tell", 2)]


async def test_a_tracer_that_fails_costs_nothing_but_the_trace(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = app_with(Broken(), tmp_path)
    async with app, app.worker():
        assert await (await app.submit("tell")).result(10) == [None, "nothing"]
    assert sorted({each.name for each in caplog.records if each.exc_info}) == ["perdure.app", "perdure.worker"]


async def test_a_span_that_cannot_be_ended_does_not_undo_an_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with app_with(BreaksAtTheEnd(), tmp_path) as app:
        assert (await app.submit("tell")).state == "queued"
        assert len(await app.submit_many([app.call("tell"), app.call("tell")])) == 2
    assert [each.message for each in caplog.records if each.exc_info] == ["the span of a submit was not ended"] * 2


@pytest.mark.parametrize("tracer", [BreaksAtTheEnd(), Swallows()])
async def test_what_went_wrong_with_a_submit_is_told_whatever_its_span_makes_of_it(
    tracer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with app_with(tracer, tmp_path) as app:
        await app.submit("tell")
        engine = await app.operations()

        async def fail(*_: object) -> None:
            raise perdure.errors.StoreFailed("the disk is gone")

        monkeypatch.setattr(type(engine), "submit", fail)
        with pytest.raises(perdure.errors.StoreFailed, match="the disk is gone"):
            await app.submit("tell")


def test_a_setting_asks_for_opentelemetry_and_says_what_is_missing(tmp_path: Path) -> None:
    import importlib.util

    app = perdure.App(tmp_path / "traces.db", settings=perdure.Settings(traces="opentelemetry"))
    if importlib.util.find_spec("opentelemetry") is None:
        with pytest.raises(perdure.Misuse, match=r"perdure\[otel\]"):
            app.sync.submit("kind")
    else:
        app.sync.submit("kind")
    app.sync.close()
    with pytest.raises(perdure.Invalid, match="traces"):
        perdure.Settings(traces="smoke")


async def test_traces_are_made_in_tests_too(app: perdure.App) -> None:
    async with TestApp(app) as testing:
        handle = await app.submit("tell", trace=GIVEN)
        await testing.run_until_idle()
        assert (await handle.result())[0] == GIVEN
