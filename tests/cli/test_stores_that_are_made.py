"""A command that writes makes its store where there is none, and says where: it may have been meant for another one."""

from pathlib import Path

import pytest

from cli.conftest import Perdure

JOB = "name: nightly\ntasks:\n  - {name: a, kind: k}\n"


@pytest.mark.parametrize(
    "command",
    [
        ("submit", "k"),
        ("job", "submit", "job.yaml"),
        ("queue", "pause", "mail"),
        ("queue", "set", "mail", "depth=3"),
        ("queue", "limit", "mail", "--concurrency", "3"),
        ("schedule", "apply", "set.yaml"),
    ],
    ids=" ".join,
)
def test_a_store_that_is_made_is_told_once_with_its_path(
    perdure: Perdure, store: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    (store.parent / "job.yaml").write_text(JOB)
    (store.parent / "set.yaml").write_text("set: s\nschedules: {}\n")
    assert "made a new store" not in perdure(*command, "--json", "--store", "other.db").err
    monkeypatch.delenv("PERDURE_STORE")
    made = store.parent / "perdure.db"
    answer = perdure(*command)
    if not made.exists():
        assert answer.code == 3  # It works on what is there.
        return
    assert answer.err.count(f"made a new store, {made}\n") == 1
    assert "made a new store" not in perdure(*command).err


def test_a_wait_is_given_its_time_in_either_word(perdure: Perdure, store: Path) -> None:
    (store.parent / "job.yaml").write_text(JOB)
    task, job = perdure("submit", "k").out.strip(), perdure("job", "submit", "job.yaml").out.strip()
    for option in ("--timeout", "--wait-timeout"):
        for command in (("task", "wait", task), ("job", "wait", job)):
            answer = perdure(*command, option, "0.01")
            assert (answer.code, "after 0.01 s" in answer.err) == (1, True), answer
