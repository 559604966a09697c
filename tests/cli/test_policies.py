"""`perdure queue show|set` and `perdure organization show|set`."""

import pytest

from cli.conftest import Perdure

UNLIMITED = {"concurrency": None, "rate": None, "per": None}


def test_a_policy_is_shown_with_its_defaults_and_changed_key_by_key(perdure: Perdure) -> None:
    perdure("db", "migrate")
    assert perdure("queue", "show", "mail", "--json").json == {
        "type": "queue",
        "name": "mail",
        "etag": None,
        "document": {"paused": False, "dead_letters": True, "depth": None, **UNLIMITED},
    }
    perdure("queue", "set", "mail", "depth=1000", "dead_letters=false")
    changed = perdure("queue", "set", "mail", "paused=true", "--json").json
    assert changed["document"] == {"paused": True, "dead_letters": False, "depth": 1000, **UNLIMITED}
    assert perdure("queue", "show", "mail", "--json").json == changed
    lines = [line.split() for line in perdure("queue", "show", "mail").out.splitlines()]
    assert lines == [
        ["queue", "mail"],
        ["concurrency", "none"],
        ["dead_letters", "false"],
        ["depth", "1000"],
        ["paused", "true"],
        ["per", "none"],
        ["rate", "none"],
        ["etag", changed["etag"]],
    ]
    assert perdure("queue", "set", "mail", "depth=none", "--json").json["document"]["depth"] is None
    assert [row["paused"] for row in perdure("queue", "list", "--json").json["queues"]] == [True]


def test_an_organizations_policy_holds_for_all_of_its_queues(perdure: Perdure) -> None:
    set_ = perdure("organization", "set", "depth=1", "--json").json
    assert (set_["name"], set_["document"]) == ("default", {"paused": False, "depth": 1, **UNLIMITED, "weight": 1})
    assert perdure("organization", "show", "--json").json == set_
    assert perdure("submit", "k", "--queue", "a").code == 0
    refused = perdure("submit", "k", "--queue", "b", "--json")
    assert (refused.code, refused.problem["code"]) == (1, "overloaded")


def test_limits_of_a_queue_and_of_the_organization_are_said_shown_and_lifted(perdure: Perdure) -> None:
    said = perdure("queue", "limit", "mail", "--concurrency", "3", "--rate", "5", "--per", "0.5", "--json").json
    assert {name: said["document"][name] for name in UNLIMITED} == {"concurrency": 3, "rate": 5, "per": 0.5}
    assert perdure("queue", "limit", "mail", "--json").json == said
    assert "3 at once, 5 in 0.5 s" in perdure("queue", "list").out
    lifted = perdure("queue", "limit", "mail", "--concurrency", "none", "--rate", "none", "--json").json["document"]
    assert (lifted["concurrency"], lifted["rate"]) == (None, None)
    assert perdure("organization", "limit", "--concurrency", "9", "--json").json["document"]["concurrency"] == 9
    assert perdure("organization", "set", "weight=0.5", "--json").json["document"]["weight"] == 0.5
    for refused in ("concurrency=0", "rate=none2", "per=0", "weight=0"):
        assert perdure("organization", "set", refused).code == 2


def test_an_organization_is_paused_and_resumed(perdure: Perdure) -> None:
    perdure("organization", "pause")
    assert perdure("organization", "show", "--json").json["document"]["paused"] is True
    perdure("organization", "resume")
    assert perdure("organization", "show", "--json").json["document"]["paused"] is False


def test_a_kind_is_paused_before_and_after_a_worker_has_declared_it(perdure: Perdure) -> None:
    perdure("kind", "pause", "mail.send")
    (kind,) = perdure("kind", "list", "--json").json["kinds"]
    assert (kind["name"], kind["paused"]) == ("mail.send", True)
    assert perdure("kind", "resume", "mail.send", "--json").json == {"kind": "mail.send", "paused": False}
    assert "no" in perdure("kind", "list").out


def test_a_change_over_another_tag_is_refused(perdure: Perdure) -> None:
    first = perdure("queue", "set", "mail", "depth=1", "--json").json["etag"]
    second = perdure("queue", "set", "mail", "depth=2", "--etag", first, "--json").json["etag"]
    refused = perdure("queue", "set", "mail", "depth=3", "--etag", first, "--json")
    assert (refused.code, refused.problem["code"]) == (2, "precondition_failed")
    assert refused.problem["fields"]["etag"] == second
    assert perdure("queue", "show", "mail", "--json").json["document"]["depth"] == 2


@pytest.mark.parametrize(
    ("said", "code", "field"),
    [
        ("depth", "malformed", "change"),
        ("=1", "malformed", "change"),
        ("depth=-1", "invalid", "depth"),
        ("depth=9999999999999999999", "invalid", "depth"),
        ("paused=maybe", "invalid", "paused"),
        ("colour=red", "invalid", "colour"),
    ],
)
def test_bad_changes_are_refused_and_change_nothing(perdure: Perdure, said: str, code: str, field: str) -> None:
    perdure("db", "migrate")
    for command in (("queue", "set", "mail"), ("organization", "set")):
        refused = perdure(*command, said, "--json")
        assert (refused.code, refused.problem["code"], refused.problem["fields"]["field"]) == (2, code, field)
    assert perdure("queue", "show", "mail", "--json").json["etag"] is None


@pytest.mark.parametrize("group", ["kind", "queue"])
def test_a_pause_of_what_nobody_has_told_of_is_noted_for_its_name_may_be_mistyped(perdure: Perdure, group: str) -> None:
    paused = perdure(group, "pause", "mial")
    assert (paused.code, paused.out) == (0, f"{group} mial is paused\n")
    assert f"nothing is known of a {group} mial yet" in paused.err
    again = perdure(group, "resume", "mial")
    assert (again.code, again.err) == (0, "")
    assert perdure(group, "pause", "liam", "--json").err == ""


def test_a_pause_of_a_queue_that_has_tasks_is_not_noted(perdure: Perdure) -> None:
    perdure("submit", "k", "--queue", "mail")
    assert perdure("queue", "pause", "mail").err == ""
