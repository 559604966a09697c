"""The history of a task as people and programs read it, and ids of the wrong sort."""

import asyncio
import re
from functools import partial

import pytest
from rich.console import Console

from cli.conftest import Perdure
from perdure import Context, Retry
from perdure.app import App


@pytest.fixture
def task(perdure: Perdure) -> str:
    """A task that told its progress and failed once, and then succeeded."""
    app = App()

    @app.task("charge", retry=Retry(2, backoff="fixed", base=0.001, jitter=0))
    async def charge(ctx: Context) -> None:
        ctx.progress(2, 20)
        if ctx.attempt == 1:
            raise ConnectionError("the bank is closed")

    async def run() -> str:
        async with app, app.worker():
            handle = await app.submit(charge)
            await handle.wait(30)
            return handle.id

    return asyncio.run(run())


def test_a_failed_attempt_tells_its_error_in_the_history(perdure: Perdure, task: str) -> None:
    lines = perdure("task", "events", task).out.splitlines()
    [failed] = [line for line in lines if " failed " in line]
    assert failed.endswith("error=ConnectionError: the bank is closed")
    assert re.search(r" due=20\d\d-\d\d-\d\d ", failed)
    assert not any('{"' in line for line in lines)


def test_instants_in_a_history_are_instants_for_programs_too(perdure: Perdure, task: str) -> None:
    events = perdure("task", "events", task, "--json").json["events"]
    [failed] = [each for each in events if each["type"] == "failed"]
    assert failed["data"]["due_at"].endswith("Z")
    assert not [name for each in events for name in each["data"] if name.endswith("_us")]


def test_progress_is_told_in_words(perdure: Perdure, task: str) -> None:
    assert re.search(r"^progress +2 of 20$", perdure("task", "show", task).out, re.MULTILINE)


def test_an_id_of_the_other_sort_is_named(perdure: Perdure, task: str) -> None:
    for command in ("show", "cancel", "wait", "retry", "progress"):
        assert f"{task} is a task, not a job: see `perdure task`" in perdure("job", command, task).err


def test_a_job_is_not_cancelled_as_a_task_and_the_command_that_does_it_is_named(perdure: Perdure) -> None:
    app = App()

    @app.task("later")
    async def later() -> None:
        return None

    async def submit() -> str:
        async with app:
            with app.job("one") as made:
                made.add(later, name="only")
            return (await made.submit()).id

    job = asyncio.run(submit())
    answer = perdure("task", "cancel", job)
    assert (answer.code, answer.out) == (2, f"{job} is a job, not a task: `perdure job cancel {job}`\n")
    assert perdure("job", "show", job, "--json").json["cancel"] is None


def test_a_shortened_id_is_told_to_be_one(perdure: Perdure, task: str) -> None:
    for short in (task[:8], task[:13], task[-6:], task[:-1]):
        answer = perdure("task", "show", short)
        assert answer.code == 2
        assert f"'{short}' is only a part of the id of a task: give all 36 characters" in answer.err
    assert "ids look like" in perdure("task", "show", "charge").err


def narrow(monkeypatch: pytest.MonkeyPatch, columns: int = 80) -> None:
    """Tables are written as to a terminal of so many columns."""
    screen = partial(Console, width=columns, highlight=False, markup=False, emoji=False, force_terminal=False)
    monkeypatch.setattr("perdure.cli.output.console", lambda *, to_stderr=False: screen(stderr=to_stderr))


def test_what_is_too_wide_for_the_terminal_stands_under_its_row(
    perdure: Perdure, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow(monkeypatch)
    lines = perdure("task", "events", task).out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["AT", "EVENT", "ACTOR"]
    place = next(place for place, line in enumerate(lines) if "  failed  " in line)
    assert re.fullmatch(r"20\S+ \S+  failed +\S{36}", lines[place])
    told = " ".join(each.strip() for each in lines[place + 1 : place + 4])
    assert "data: fence=" in told
    assert "error=ConnectionError: the bank is closed" in told
    shown = perdure("task", "show", task).out
    assert "    error: ConnectionError: the bank is closed\n" in shown
    waiting = perdure("submit", "other").out.strip()
    why = perdure("task", "why", waiting).out
    assert "    what frees it: start a worker" in why
    narrow(monkeypatch, 300)
    assert "    data:" not in perdure("task", "events", task).out


def test_attempts_of_a_redriven_task_are_told_with_their_generation(perdure: Perdure) -> None:
    app = App()

    @app.task("sink", max_attempts=1)
    async def sink(ctx: Context) -> None:
        raise ConnectionError("no")

    async def run(task_id: str | None = None) -> str:
        async with app, app.worker():
            handle = await app.submit(sink) if task_id is None else app.handle(task_id)
            await handle.wait(30)
            return handle.id

    task_id = asyncio.run(run())
    head = [line for line in perdure("task", "show", task_id).out.splitlines() if "FENCE" in line]
    assert head[0].split() == ["ATTEMPT", "STATE", "REASON", "WORKER", "LEASED", "HELD", "ERROR", "FENCE"]
    assert perdure("dead-letter", "requeue", task_id).code == 0
    asyncio.run(run(task_id))
    lines = perdure("task", "show", task_id).out.splitlines()
    place = next(place for place, line in enumerate(lines) if "FENCE" in line)
    assert lines[place].startswith("GENERATION  ATTEMPT  STATE ")
    assert [line.split()[:2] for line in lines[place + 1 : place + 3]] == [["1", "1"], ["2", "1"]]


def test_a_wait_tells_with_which_words_a_task_was_cancelled(perdure: Perdure) -> None:
    task_id = perdure("submit", "nobody.has.it").out.split()[0]
    assert perdure("task", "cancel", task_id, "--reason", "wrong customer").code == 0
    told = perdure("task", "wait", task_id)
    assert re.search(rf"^{task_id}  cancelled  user    wrong customer$", told.out, re.MULTILINE)


def test_what_holds_a_task_is_told_with_its_sort(perdure: Perdure) -> None:
    task_id = perdure("submit", "nobody.has.it").out.split()[0]
    assert perdure("queue", "pause", "default").code == 0
    assert perdure("queue", "limit", "default", "--concurrency", "1").code == 0
    assert "  queue default  " in perdure("task", "why", task_id).out
    told = perdure("task", "why", task_id, "--json").json["obstacles"]
    assert {each["by_what"] for each in told if each["by"]} == {"queue"}
