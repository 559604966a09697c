"""Unique tasks from the command line."""

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
    answer = perdure("submit", "k", "--unique", '{"by": 7}')
    assert (answer.code, "--unique" in answer.err) == (2, True)
