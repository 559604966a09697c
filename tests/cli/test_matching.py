"""Dead letters and cancels by filter from the command line: counted first, paced, told in each task's history."""

import asyncio
from pathlib import Path

import pytest

import perdure as library
from cli.conftest import Perdure


@pytest.fixture
def letters(store: Path) -> list[str]:
    """Three dead letters: two of `explode`, one of `implode` in queue `slow`."""
    app = library.App(store)

    @app.task("explode", max_attempts=1)
    async def explode(n: int = 0) -> None:
        raise ValueError("no such luck")

    @app.task("implode", max_attempts=1, queue="slow")
    async def implode() -> None:
        raise ValueError("no such luck")

    async def main() -> list[str]:
        async with app, app.worker():
            handles = [await app.submit(task) for task in (explode, explode, implode)]
            await library.wait_all(handles, 30)
            return [handle.id for handle in handles]

    return asyncio.run(main())


def states(perdure: Perdure, ids: list[str]) -> list[str]:
    return [perdure("task", "show", each, "--json").json["state"] for each in ids]


def test_a_dry_run_counts_and_changes_nothing(perdure: Perdure, letters: list[str]) -> None:
    assert perdure("dead-letter", "requeue", "--all", "--dry-run", "--json").json == {"matched": 3}
    assert perdure("dead-letter", "purge", "--queue", "slow", "--dry-run").out == "1 task would be purged\n"
    assert perdure("dead-letter", "discard", letters[0], "--dry-run", "--json").json == {"matched": 1}
    assert states(perdure, letters) == ["dead_lettered"] * 3


def test_dead_letters_are_requeued_by_kind_reason_and_time(perdure: Perdure, letters: list[str]) -> None:
    ended = perdure("task", "show", letters[0], "--json").json["finished_at"]
    nothing = perdure("dead-letter", "requeue", "--ended-before", ended, "--kind", "explode", "--yes", "--json")
    assert nothing.json["requeued"] <= 1
    left = 2 - nothing.json["requeued"]
    answer = perdure(
        "dead-letter", "requeue", "--kind", "explode", "--reason", "exhausted", "--ended-from", ended, "--yes", "--json"
    )
    assert answer.json == {"requeued": left, "refused": []}
    assert states(perdure, letters)[2] == "dead_lettered"
    [event] = [
        each for each in perdure("task", "events", letters[0], "--json").json["events"] if each["type"] == "redriven"
    ]
    assert event["actor"]


def test_dead_letters_are_listed_by_reason_and_time(perdure: Perdure, letters: list[str]) -> None:
    def listed(*options: str) -> set[str]:
        return {each["id"] for each in perdure("dead-letter", "list", *options, "--json").json["tasks"]}

    ended = {perdure("task", "show", each, "--json").json["finished_at"]: each for each in letters}
    first = min(ended)
    assert listed("--reason", "exhausted") == set(letters)
    assert listed("--reason", "permanent") == set()
    assert listed("--ended-from", first, "--kind", "explode") == set(letters[:2])
    assert listed("--ended-before", first) == set()
    assert "there is no reason 'bored'; they are " in perdure("dead-letter", "list", "--reason", "bored").err


def test_what_is_requeued_at_a_rate_waits_its_turn(perdure: Perdure, letters: list[str]) -> None:
    assert perdure("dead-letter", "requeue", "--all", "--rate", "3", "--yes", "--json").json["requeued"] == 3
    due = sorted(perdure("task", "show", each, "--json").json["due_at"] for each in letters)
    assert len(set(due)) == 3


def test_discarded_ones_are_purged_by_filter(perdure: Perdure, letters: list[str]) -> None:
    discarded = perdure("dead-letter", "discard", "--queue", "slow", "--yes", "--json").json
    assert discarded == {"discarded": 1, "refused": []}
    assert perdure("dead-letter", "discard", "--all", "--dry-run", "--json").json == {"matched": 2}
    assert perdure("dead-letter", "purge", "--all", "--yes", "--json").json == {"purged": 3, "refused": []}
    assert perdure("task", "show", letters[0], "--json").problem["code"] == "not_found"


def test_one_runs_again_with_another_payload(perdure: Perdure, letters: list[str]) -> None:
    assert perdure("dead-letter", "requeue", letters[0], "--payload", '{"n": 2}').out == "1 task is requeued\n"
    assert perdure("task", "show", letters[0], "--json").json["payload"] == {"n": 2}
    assert (
        perdure("dead-letter", "requeue", "--all", "--payload", "{}", "--yes", "--json").problem["code"] == "malformed"
    )
    assert perdure("dead-letter", "requeue", letters[1], "--payload", "{", "--json").problem["code"] == "malformed"


def test_none_runs_again_with_a_payload_that_a_submit_would_refuse(perdure: Perdure, letters: list[str]) -> None:
    before = perdure("task", "show", letters[0], "--json").json
    answer = perdure("dead-letter", "requeue", letters[0], "--payload", '{"n": "two"}')
    assert (answer.code, answer.out) == (2, "")
    assert f"{letters[0]}: payload.n is not what kind 'explode' takes" in answer.err
    assert perdure("task", "show", letters[0], "--json").json == before
    bare = perdure("dead-letter", "discard", "01900000-0000-7000-8000-000000000001").err
    assert bare == "perdure: 01900000-0000-7000-8000-000000000001: it is no dead letter\n"


def test_tasks_are_cancelled_by_what_they_have_in_common(perdure: Perdure) -> None:
    ours = [perdure("submit", "k", "1", "--label", f"team={team}").out.strip() for team in ("x", "y", "x")]
    other = perdure("submit", "other", "1", "--queue", "slow").out.strip()
    assert perdure("task", "cancel", "--label", "team=x", "--dry-run", "--json").json == {"matched": 2}
    answer = perdure("task", "cancel", "--label", "team=x", "--kind", "k", "--reason", "no more", "--yes", "--json")
    assert answer.json == {"matched": 2, "counts": {"cancelled": 2}}
    assert states(perdure, [*ours, other]) == ["cancelled", "queued", "cancelled", "queued"]
    assert perdure("task", "show", ours[0], "--json").json["cancel"]["text"] == "no more"
    assert perdure("task", "cancel", "--queue", "slow", "--yes").out == "1 cancelled\n"
    assert perdure("task", "cancel", "--submitter", "nobody", "--yes").out == "nothing to cancel\n"


def test_a_cancel_says_which(perdure: Perdure) -> None:
    task = perdure("submit", "k", "1").out.strip()
    for arguments in ((), (task, "--kind", "k"), (task, "--dry-run")):
        assert perdure("task", "cancel", *arguments, "--json").problem["code"] == "malformed"
    bad = perdure("dead-letter", "requeue", "--ended-from", "yesterday", "--yes", "--json")
    assert bad.problem["code"] == "malformed"
    assert "time zone" in perdure("dead-letter", "requeue", "--ended-from", "2026-12-01T08:00:00", "--yes").err
