"""`perdure schedule`: sets in files, and one schedule at a time."""

import re
from pathlib import Path

import pytest

from cli.conftest import Perdure
from perdure import App
from perdure.cli import schedule
from perdure.cli.schedule import overdue
from perdure.domain.limits import SECOND_US

CREW = """\
set: crew
schedules:
  nightly:
    cron: "0 3 * * *"
    time_zone: Europe/Berlin
    overlap: queue_one
    task: {kind: report.render, payload: {month: "2026-11"}}
  beat:
    every: 60
    task: {kind: beat}
"""


def applied(perdure: Perdure, text: str = CREW) -> None:
    Path("crew.yaml").write_text(text, encoding="utf-8")
    assert perdure("schedule", "apply", "crew.yaml").code == 0


def test_a_file_converges_and_says_before_what_it_would_do(perdure: Perdure):
    Path("crew.yaml").write_text(CREW, encoding="utf-8")
    assert perdure("db", "migrate").code == 0
    planned = perdure("schedule", "apply", "crew.yaml", "--dry-run", "--json").json
    assert [(each["name"], each["action"]) for each in planned["steps"]] == [("beat", "create"), ("nightly", "create")]
    assert perdure("schedule", "list", "--json").json["schedules"] == []
    assert "create" in perdure("schedule", "apply", "crew.yaml").out
    again = perdure("schedule", "apply", "crew.yaml", "--json").json
    assert {each["action"] for each in again["steps"]} == {"keep"}
    applied(perdure, CREW.replace("every: 60", "every: 90").replace("  nightly:", "  other:"))
    assert [each["name"] for each in perdure("schedule", "list", "--json").json["schedules"]] == ["beat", "other"]
    assert [each["name"] for each in perdure("schedule", "list", "--set", "x", "--json").json["schedules"]] == []


def test_what_is_wrong_in_a_file_is_told_with_its_place(perdure: Perdure):
    for old, new, said in (
        ('"0 3 * * *"', '"61 3 * * *"', "crew.yaml:4:5: schedule 'nightly': cron: minute must be 0 to 59"),
        ("Europe/Berlin", "Mars/Olympus", "crew.yaml:5:5"),
        ("every: 60", "every: 0", "crew.yaml:9:5"),
        (
            "every: 60",
            "evry: 60",
            "crew.yaml:9:5: schedules.beat.evry: there is no field 'evry'; did you mean 'every'?",
        ),
        (
            "task: {kind: beat}",
            "task: {kind: a, unique: {bi: doc}}",
            "schedules.beat.task.unique.bi: there is no field 'bi'; there is by, max_wait",
        ),
        (
            "task: {kind: beat}",
            "job: {name: j, tasks: [{name: a, kind: k, retry: {bace: 1}}]}",
            "schedules.beat.job.tasks[0].retry.bace: there is no field 'bace'; did you mean 'base'?",
        ),
        ("set: crew", "sets: crew", "has no field 'sets'"),
        ("schedules:", "schedules: []\nother:", "other"),
    ):
        Path("crew.yaml").write_text(CREW.replace(old, new), encoding="utf-8")
        answer = perdure("schedule", "apply", "crew.yaml")
        assert answer.code == 2
        assert said in answer.err, answer.err
        dry = perdure("schedule", "apply", "crew.yaml", "--dry-run")
        assert (dry.code, dry.out, dry.err) == (2, "", answer.err)


def test_one_schedule_is_shown_paused_resumed_asked_for_and_deleted(perdure: Perdure):
    applied(perdure)
    shown = perdure("schedule", "show", "nightly")
    assert "0 3 * * * Europe/Berlin" in shown.out
    assert "task report.render" in shown.out
    assert '{"kind":"report.render","payload":{"month":"2026-11"}}' in shown.out
    assert "\nnext " in shown.out
    assert perdure("schedule", "show", "nightly", "--json").json["definition"]["set"] == "crew"
    assert perdure("schedule", "pause", "nightly", "--json").json["paused"] is True
    assert "paused" in perdure("schedule", "list").out
    assert "\nnext " not in perdure("schedule", "show", "nightly").out
    assert perdure("schedule", "resume", "nightly", "--json").json["paused"] is False
    task = perdure("schedule", "trigger", "nightly").out.strip()
    assert perdure("task", "show", task, "--json").json["principal"] == "schedule:nightly"
    span = ("--from", "2026-03-28T00:00Z", "--to", "2026-03-30T00:00Z")
    filled = perdure("schedule", "backfill", "nightly", *span, "--json").json["made"]
    assert [each["replayed"] for each in filled] == [False, False]
    assert "was there" in perdure("schedule", "backfill", "nightly", *span).out
    assert len(perdure("schedule", "fires", "nightly", "--json").json["fires"]) == 3
    assert "backfill" in perdure("schedule", "fires", "nightly", "--limit", "2").out
    assert perdure("schedule", "delete", "nightly").code == 2
    assert perdure("schedule", "delete", "nightly", "--yes").code == 0
    assert len(perdure("schedule", "fires", "nightly", "--json").json["fires"]) == 3
    for verb in ("show", "pause", "resume", "trigger", "preview"):
        assert perdure("schedule", verb, "nightly").code == 2
    assert perdure("schedule", "fires", "nobody").code == 2


def test_a_file_that_names_no_set_is_told_what_to_write(perdure: Perdure):
    Path("crew.yaml").write_text(CREW.replace("set: crew\n", ""), encoding="utf-8")
    assert "name the set by a line such as `set: reports`" in perdure("schedule", "apply", "crew.yaml").err


def test_a_schedule_of_a_file_is_previewed_before_it_is_applied(perdure: Perdure):
    Path("crew.yaml").write_text(CREW, encoding="utf-8")
    asked = ("schedule", "preview", "--file", "crew.yaml")
    after = ("--after", "2026-03-28T12:00Z", "-n", "1")
    assert perdure(*asked, "nightly", *after).out == "2026-03-29 03:00:00 +0200 Sun\n"
    assert perdure(*asked, "beat", "-n", "3").out.count("\n") == 3
    for more in ((), ("nobody",)):
        answer = perdure(*asked, *more)
        assert (answer.code, "name one of the schedules of crew.yaml: nightly, beat" in answer.err) == (2, True)
    assert perdure(*asked, "nightly", "--cron", "@daily").code == 2
    Path("crew.yaml").write_text(CREW.replace("0 3 *", "0 33 *"), encoding="utf-8")
    assert "crew.yaml:4:5: " in perdure(*asked, "nightly").err
    assert not Path("store.db").exists()


def test_the_next_instant_is_told_on_the_clock_of_the_schedule(perdure: Perdure):
    applied(perdure)
    [nightly] = [each for each in perdure("schedule", "list").out.splitlines() if each.startswith("nightly")]
    assert re.search(r" 03:00:00 \+0[12]00 ", nightly)
    assert re.search(r"^next +20\d\d-\d\d-\d\d 03:00:00 \+0[12]00$", perdure("schedule", "show", "nightly").out, re.M)
    [beat] = [each for each in perdure("schedule", "list").out.splitlines() if each.startswith("beat")]
    assert re.search(r":\d\d:\d\d [+-]\d{4} ", beat)


def test_a_preview_needs_a_schedule_or_an_expression(perdure: Perdure):
    expression = ("--cron", "30 2 * * *", "--time-zone", "Europe/Berlin", "--after", "2026-03-28T12:00Z")
    assert perdure("schedule", "preview", *expression, "-n", "2").out.splitlines() == [
        "2026-03-29 03:00:00 +0200 Sun",
        "2026-03-30 02:30:00 +0200 Mon",
    ]
    skipped = perdure("schedule", "preview", *expression, "-n", "1", "--gap", "skip", "--json").json
    assert skipped["instants"] == ["2026-03-30T00:30:00.000000Z"]
    applied(perdure)
    assert len(perdure("schedule", "preview", "nightly", "-n", "3").out.splitlines()) == 3
    for wrong in (
        (),
        ("nightly", "--cron", "@daily"),
        ("--cron", "nonsense"),
        ("--cron", "@daily", "--time-zone", "Nowhere"),
        ("nightly", "--after", "yesterday"),
        ("nightly", "--after", "2026-01-01T00:00"),
        ("nightly", "-n", "0"),
    ):
        assert perdure("schedule", "preview", *wrong).code == 2, wrong


def test_what_should_have_come_a_minute_ago_is_overdue(perdure: Perdure, store: Path):
    applied(perdure)
    with App(str(store)).sync as client:
        beat = client.schedules.get("beat")
    assert beat is not None
    assert beat.due_us is not None
    assert overdue([beat], beat.due_us + 59 * SECOND_US) == []
    assert overdue([beat], beat.due_us + 61 * SECOND_US) == ["beat"]
    assert overdue([beat._replace(paused=True)], beat.due_us + 61 * SECOND_US) == []
    assert overdue([beat._replace(waiting_us=1)], beat.due_us + 61 * SECOND_US) == []
    assert "nobody fires" not in perdure("schedule", "list").err


def test_the_list_names_what_nobody_fires(perdure: Perdure, monkeypatch: pytest.MonkeyPatch):
    applied(perdure)
    monkeypatch.setattr(schedule, "LATE_US", -3600 * 24 * 7 * SECOND_US)
    assert "nobody fires beat, nightly, due for more than a minute" in perdure("schedule", "list").err
    assert perdure("schedule", "list", "--json").err == ""


def test_a_preview_of_a_file_is_told_how_it_is_asked_for(perdure: Perdure):
    applied(perdure)
    told = perdure("schedule", "preview", "crew.yaml")
    assert told.code == 2
    assert (
        "there is no schedule 'crew.yaml'; a schedule of the file crew.yaml is previewed with --file crew.yaml and"
        in (told.err)
    )
    assert "--file" not in perdure("schedule", "preview", "nothing.yaml").err


def test_instants_of_a_schedule_are_on_its_clock_wherever_they_are_told(perdure: Perdure):
    applied(perdure)
    span = ("--from", "2026-11-01T00:00Z", "--to", "2026-11-02T00:00Z")
    filled = perdure("schedule", "backfill", "nightly", *span).out
    assert filled.splitlines()[1].startswith("2026-11-01 03:00:00 +0100 ")
    [line] = perdure("schedule", "fires", "nightly").out.splitlines()[1:]
    assert line.startswith("2026-11-01 03:00:00 +0100 ")
    [due] = [line for line in perdure("schedule", "show", "nightly").out.splitlines() if line.startswith("due ")]
    assert re.search(r" 03:00:0\d \+0[12]00$", due)
