"""What a decoder found wrong is told in words that say what would be right."""

from typing import Any, Literal

import msgspec
import pytest

from perdure import mistakes
from perdure.domain import likeness
from perdure.domain.retry import Retry
from perdure.domain.states import JobState


class Part(msgspec.Struct, forbid_unknown_fields=True):
    colour: Literal["red", "green"] = "red"
    states: list[JobState] = []
    retry: Retry | None = None


class Whole(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    parts: list[Part] = []
    named: dict[str, Part] = {}
    pair: tuple[int, Part] | None = None


Several = Whole | list[Whole]


@pytest.mark.parametrize(
    ("wanted", "value", "path", "words"),
    [
        (Whole, {"nmae": "x"}, "nmae", "there is no field 'nmae'; did you mean 'name'?"),
        (Whole, {"size": 1}, "size", "there is no field 'size'; there is name, named, pair, parts"),
        (Whole, {}, "name", "it is missing"),
        (Whole, {"name": "x", "parts": [{}, {"color": "red"}]}, "parts[1].color", "did you mean 'colour'?"),
        (Whole, {"name": "x", "parts": [{"colour": "blue"}]}, "parts[0].colour", "no 'blue' here; there is green, red"),
        (Whole, {"name": "x", "parts": [{"states": ["faild"]}]}, "parts[0].states[0]", "did you mean 'failed'?"),
        (Whole, {"name": "x", "named": {"a": {"colour": "grene"}}}, "named[...].colour", "did you mean 'green'?"),
        (Whole, {"name": "x", "pair": [1, {"colour": "grene"}]}, "pair[1].colour", "did you mean 'green'?"),
        (Whole, {"name": 1}, "name", "must be text, not a whole number"),
        (Whole, 3, "", "must be an object, not a whole number"),
        (Several, [{"name": "a"}, {"nam": "b"}], "[1].nam", "did you mean 'name'?"),
        (Several, {"name": "a", "part": []}, "part", "did you mean 'parts'?"),
    ],
)
def test_a_mistake_is_told_with_its_place_and_what_would_be_right(wanted: Any, value: Any, path: str, words: str):
    with pytest.raises(msgspec.ValidationError) as fault:
        msgspec.json.decode(msgspec.json.encode(value), type=wanted)
    told, place = mistakes.said(fault.value, wanted)
    assert place == path
    assert words in told


def test_of_many_choices_none_is_told_but_the_nearest():
    fields = [f"field_{number}" for number in range(mistakes.SHOWN_CHOICES + 1)]
    assert mistakes.unknown_field("xyz", fields) == "there is no field 'xyz'"
    assert mistakes.unknown_field("feld_3", fields).endswith("did you mean 'field_3'?")


def test_a_very_long_name_is_compared_with_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(likeness.difflib, "get_close_matches", lambda *_: pytest.fail("compared"))
    assert mistakes.unknown_field("x" * (likeness.GIVEN_MAX_CHARS + 1), ["a"]).endswith("; there is a")
