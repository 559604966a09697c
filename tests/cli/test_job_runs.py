"""A job's run from the command line: how far it is, when its tasks ran, and what failed of it run again."""

import asyncio
from pathlib import Path

import pytest

from cli.conftest import Perdure
from perdure.app import App


@pytest.fixture
def job(perdure: Perdure) -> str:
    """A job that failed: `bad` did, `good` did not, `after` waited for both."""
    app = App()

    @app.task("pass")
    async def passing() -> None:
        return None

    @app.task("fail", max_attempts=1)
    async def failing() -> None:
        raise ValueError("no")

    async def run() -> str:
        async with app, app.worker():
            with app.job("pair") as made:
                good = made.add(passing, name="good")
                bad = made.add(failing, name="bad")
                made.add(passing, after=[good, bad], name="after")
            handle = await made.submit()
            await handle.wait(30)
            return handle.id

    return asyncio.run(run())


def test_progress_tells_states_and_shares(perdure: Perdure, job: str) -> None:
    shown = perdure("job", "progress", job, "--json").json
    assert (shown["state"], shown["total"], shown["ended"]) == ("failed", 3, 3)
    assert shown["counts"]["succeeded"] == shown["counts"]["failed"] == shown["counts"]["cancelled"] == 1
    text = perdure("job", "progress", job).out
    assert "3 of 3 ended (100%): 1 cancelled, 1 dead_lettered, 1 succeeded" in text
    assert "1 cancelled, 1 dead_lettered, 1 succeeded" in perdure("job", "show", job).out


def test_the_critical_path_is_shown_alone(perdure: Perdure, job: str) -> None:
    shown = perdure("job", "show", job, "--critical-path", "--json").json
    assert {task["name"] for task in shown["tasks"]} == set(shown["critical_tasks"])
    assert shown["critical_path"] <= shown["makespan"]
    text = perdure("job", "show", job, "--critical-path").out
    assert "critical path" in text
    assert all(name in text for name in shown["critical_tasks"])


def test_bars_stand_for_what_ran(perdure: Perdure, job: str) -> None:
    answer = perdure("job", "gantt", job, "--width", "20")
    lines = {line.split()[0]: line for line in answer.out.splitlines() if line.strip()}
    assert "█" in lines["good"] + lines["bad"]
    assert "after" not in lines
    assert "1 more" in answer.err
    shown = perdure("job", "gantt", job, "--json").json
    assert [task["name"] for task in shown["tasks"]][-1] == "after"
    assert "2 more" in perdure("job", "gantt", job, "--limit", "1").err


def test_bars_of_a_job_of_which_nothing_ran(perdure: Perdure, tmp_path) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "job.yaml"
    file.write_text("name: idle\ntasks:\n  - name: a\n    kind: k\n")
    job = perdure("job", "submit", str(file)).out.strip()
    assert perdure("job", "gantt", job).out == "no task has begun\n"
    assert perdure("job", "progress", job, "--json").json["ended"] == 0


def test_a_retry_runs_what_failed(perdure: Perdure, job: str) -> None:
    assert perdure("job", "retry", job).out == f"{job} runs again: 1 failed task, and 1 task cancelled for them\n"
    shown = {task["name"]: task["state"] for task in perdure("job", "show", job, "--json").json["tasks"]}
    assert shown == {"good": "succeeded", "bad": "queued", "after": "pending"}
    again = perdure("job", "retry", job, "--json")
    assert (again.code, again.problem["code"]) == (2, "conflict")


def test_a_job_that_is_not_there_is_told_so(perdure: Perdure, job: str) -> None:
    other = job[:-1] + ("0" if job[-1] != "0" else "1")
    for command in (("retry",), ("progress",), ("gantt",), ("show", "--critical-path")):
        answer = perdure("job", *command, other, "--json")
        assert answer.problem["code"] == "not_found", command


def test_a_wait_for_jobs_tells_how_they_ended(perdure: Perdure, job: str) -> None:
    ended = perdure("job", "wait", job)
    assert ended.code == 1
    assert "failed" in ended.out
    assert perdure("job", "wait", job, "--json").json["jobs"][0]["counts"]["failed"] == 1
    unknown = perdure("job", "wait", "00000000-0000-7000-8000-000000000000")
    assert (unknown.code, "there is no job" in unknown.err) == (2, True)


def test_a_task_that_failed_is_told_by_its_state_wherever_people_look(perdure: Perdure, job: str) -> None:
    for command in ("wait", "show", "progress"):
        assert "1 cancelled, 1 dead_lettered, 1 succeeded" in perdure("job", command, job).out, command


def test_a_job_can_be_waited_for_where_it_is_submitted(perdure: Perdure, tmp_path: Path) -> None:
    file = tmp_path / "nap.yaml"
    file.write_text("name: nap\ntasks:\n  - {name: a, kind: perdure.sleep, payload: {seconds: 0}}\n", encoding="utf-8")
    waited = perdure("job", "submit", str(file), "--wait", "--wait-timeout", "0.1")
    assert waited.code == 1
    assert "it goes on: 1 of 1 tasks were open" in waited.err
    assert "no live worker has the kind perdure.sleep" in waited.err

    async def work() -> None:
        app = App()
        async with app, app.worker():
            await (await app.job_handle(waited.out.strip())).wait(30)

    asyncio.run(work())
    again = perdure("job", "wait", waited.out.strip())
    assert (again.code, "succeeded" in again.out) == (0, True)


def test_a_time_to_wait_without_a_wait_is_refused(perdure: Perdure, tmp_path: Path) -> None:
    file = tmp_path / "nap.yaml"
    file.write_text("name: nap\ntasks:\n  - {name: a, kind: perdure.sleep, payload: {seconds: 0}}\n", encoding="utf-8")
    for command in (("job", "submit", str(file)), ("submit", "k")):
        refused = perdure(*command, "--wait-timeout", "1")
        assert (refused.code, "--wait" in refused.err, refused.out) == (2, True, "")


def test_a_wait_of_no_time_tells_how_an_ended_job_ended(perdure: Perdure, job: str) -> None:
    ended = perdure("job", "wait", job, "--timeout", "0", "--json").json["jobs"]
    assert [each["state"] for each in ended] == ["failed"]


@pytest.mark.parametrize("command", ["show", "wait"])
def test_a_job_that_failed_says_why(perdure: Perdure, job: str, command: str) -> None:
    lines = perdure("job", command, job).out.splitlines()
    [told] = [line for line in lines if "ValueError: no" in line]
    [bad] = [each for each in perdure("job", "show", job, "--json").json["tasks"] if each["name"] == "bad"]
    assert told == f"bad {bad['state']} ({bad['reason']}), task {bad['id']}: ValueError: no"
    assert not any(line.startswith("after") and "upstream" in line and "task " in line for line in lines)


def test_a_job_that_is_cancelled_twice_says_so(perdure: Perdure, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("name: idle\ntasks:\n  - name: a\n    kind: k\n")
    job = perdure("job", "submit", "job.yaml").out.strip()
    assert perdure("job", "cancel", job).code == 0
    assert perdure("job", "cancel", job).out == f"{job} was cancelled before: it is cancelled\n"
