"""Options that are given something else than they take: told in plain words, with the option, and exit code 2.

Made from the commands: whoever adds an option with a number has its refusals read here.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import typer

from cli.conftest import Perdure
from perdure.cli.main import app

CODE = re.compile(r"\b(?:int|integer|float|str|bool|nan is less|x)\b|[<>]=|Traceback")
NUMBERS = re.compile(r"int|integer|float|(?:int|integer|float) range")
ARGUMENT = "0198c5a4-7f3e-7abc-8def-0123456789ab"


class Option(NamedTuple):
    """An option that takes a number, of a command with arguments that fit."""

    command: tuple[str, ...]
    name: str
    bounds: Any


def numbers(command: Any, path: tuple[str, ...] = ()) -> Iterator[Option]:
    """Every option of a command and of those below it that takes a number."""
    for name, below in getattr(command, "commands", {}).items():
        yield from numbers(below, (*path, name))
    needed = sum(each.param_type_name == "argument" and each.required for each in command.params)
    for each in command.params:
        number = NUMBERS.fullmatch(each.type.name) is not None or each.metavar == "DURATION"
        if number and each.opts[0].startswith("--"):
            yield Option((*path, *[ARGUMENT] * needed), each.opts[0], each.type)


OPTIONS = list(numbers(typer.main.get_command(app)))


def test_there_are_options_that_take_numbers():
    names = {each.name for each in OPTIONS}
    assert names >= {
        "--priority",
        "--limit",
        "--timeout",
        "--time-scale",
        "--grace",
        "--per",
        "--for",
        "--active-since",
    }


def test_what_an_option_calls_seconds_may_be_said_as_a_duration(perdure: Perdure):
    assert perdure("db", "migrate").code == 0
    assert perdure("worker", "list", "--active-since", "2m").code == 0
    assert perdure("queue", "limit", "mail", "--rate", "100", "--per", "5m").code == 0
    assert perdure("queue", "show", "mail", "--json").json["document"]["per"] == 300


@pytest.mark.parametrize("option", OPTIONS, ids=lambda each: " ".join((*each.command, each.name)))
def test_a_number_that_does_not_fit_is_refused_in_plain_words(perdure: Perdure, option: Option):
    wrong = ["soon", "٥", "５", "1_0", "5 ", " 5"]
    if "float" in option.bounds.name:
        wrong += ["nan", "inf", "-inf"]
    if not NUMBERS.fullmatch(option.bounds.name):
        wrong += ["nan", "inf", "-inf", "-1", "5 minutes", "m", "-5m", "٥m", "5 m", "1_0s", " 5m"]
    if getattr(option.bounds, "min", None) is not None:
        wrong.append(str(option.bounds.min - 1))
    if getattr(option.bounds, "max", None) is not None:
        wrong.append(str(option.bounds.max + 1))
    for value in wrong:
        answer = perdure(*option.command, option.name, value)
        assert answer.code == 2, (value, answer)
        [line] = answer.err.splitlines()
        assert option.name in line
        assert value in line
        assert not CODE.search(line), line


def test_a_limit_is_written_with_plain_digits(perdure: Perdure):
    for wrong in ("٥", "1_0", " 5", "5 "):
        answer = perdure("queue", "limit", "mail", "--concurrency", wrong)
        assert (answer.code, "whole number" in answer.err) == (2, True), answer


@pytest.mark.parametrize(
    "command",
    [
        ("submit", "k", "--retry"),
        ("submit", "k", "--unique"),
        ("submit", "k", "--metadata"),
        ("submit", "k"),
        ("dead-letter", "requeue", ARGUMENT, "--payload"),
    ],
    ids=" ".join,
)
def test_what_is_no_json_is_refused_with_an_example_that_is_taken(perdure: Perdure, command: tuple[str, ...]):
    assert perdure("db", "migrate").code == 0
    wrong = ["{", "hello"]
    if command[-1] in ("--retry", "--unique"):
        wrong += ["5", "null", '["fixed"]', '"fixed"', '{"no": 1}']
    for value in wrong:
        answer = perdure(*command, value)
        assert answer.code == 2, answer
        [line] = answer.err.splitlines()
        example = re.search(r"'(\{.*\})'$", line)
        assert example is not None, line
        taken = perdure(*command, example[1])
        assert "JSON" not in taken.err
        assert taken.code == 0 or "there is no task" in taken.err, taken
