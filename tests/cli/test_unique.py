"""Unique tasks from the command line."""

from datetime import datetime

from cli.conftest import Perdure

BY = '{"by": "customer", "on_conflict": "%s"}'


def test_submit_says_what_became_of_a_unique_task(perdure: Perdure) -> None:
    payload = '{"customer": "a"}'
    first = perdure("submit", "k", payload, "--unique", BY % "reject", "--json").json
    existing = perdure("submit", "k", payload, "--unique", BY % "return_existing")
    assert existing.out.strip() == first["id"]
    assert "another task holds its key" in existing.err
    replaced = perdure("submit", "k", payload, "--unique", BY % "replace", "--json").json
    assert (replaced["outcome"], replaced["id"] == first["id"]) == ("replaced", False)
    refused = perdure("submit", "k", payload, "--unique", BY % "reject")
    assert refused.code == 2
    assert replaced["id"] in refused.err


def test_a_fingerprint_stands_for_the_fields(perdure: Perdure) -> None:
    said = ("--unique", BY % "return_existing", "--unique-key", "f1", "--json")
    answers = [perdure("submit", "k", payload, *said).json for payload in ('{"customer": 1}', '{"customer": 2}')]
    assert [each["outcome"] for each in answers] == ["created", "existing"]


def test_bad_uniqueness_is_refused_with_its_place(perdure: Perdure) -> None:
    for said, told in (
        ('{"by": 7}', "--unique: by: must be"),
        ('{"bi": "doc"}', "--unique: bi: there is no field 'bi'; there is by, max_wait"),
        (
            '{"by": "doc", "on_conflict": "debounce", "wiat": 3}',
            "--unique: wiat: there is no field 'wiat'; did you mean",
        ),
        ('{"on_conflict": "debounce"}', "--unique: debounce needs wait"),
        ("7", "--unique '7' is no JSON object: write it as --unique '{"),
    ):
        answer = perdure("submit", "k", "--unique", said)
        assert (answer.code, told in answer.err) == (2, True), answer.err
    assert perdure("task", "list").out.strip() in ("", "no tasks")


def test_what_an_option_says_in_json_or_as_a_duration_is_kept(perdure: Perdure) -> None:
    said = ("--delay", "5m", "--lease", "2m", "--on-loss", "count", "--max-losses", "2", "--ttl", "2h")
    task = perdure("submit", "k", "--retry", '{"max_attempts": 7, "backoff": "fixed"}', *said, "--json").json["id"]
    shown = perdure("task", "show", task, "--json").json
    assert shown["max_attempts"] == 7
    span = datetime.fromisoformat(shown["due_at"]) - datetime.fromisoformat(shown["created_at"])
    assert span.total_seconds() == 300
    for wrong, told in (
        (("--retry", '{"max_atempts": 7}'), "--retry: max_atempts: there is no field 'max_atempts'; did you mean"),
        (("--delay", "5 minutes"), "'5 minutes' is no duration"),
        (("--delay", "-5"), "no duration"),
        (("--delay", "nan"), "no duration"),
        (("--on-loss", "cry"), "on_loss"),
    ):
        answer = perdure("submit", "k", *wrong)
        assert (answer.code, told in answer.err) == (2, True), answer.err
