"""Options in the wrong place or under another word: told where they belong, made from the commands."""

from collections.abc import Iterator
from typing import Any

import pytest
import typer

from cli.conftest import Perdure
from perdure.cli.main import app

PROGRAM: Any = typer.main.get_command(app)


def options(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str, bool]]:
    """Every option of every command below: the command, the option and whether it takes a value."""
    for name, below in getattr(command, "commands", {}).items():
        for each in below.params:
            if each.param_type_name == "option" and each.opts[0].startswith("--") and not each.hidden:
                yield (*path, name), each.opts[0], not each.is_flag
        yield from options(below, (*path, name))


OPTIONS = [each for each in options(PROGRAM) if each[1] not in ("--help", "--version", "--debug")]


def test_an_option_before_its_command_is_told_to_come_after_it(perdure: Perdure) -> None:
    assert len(OPTIONS) > 100
    for path, option, takes_value in OPTIONS:
        # As its value the name of a command, which is not taken for one.
        answer = perdure(option, *(["task"] if takes_value else []), *path)
        assert answer.code == 2
        advice = f"{option} comes after the command: `perdure {' '.join(path)} {option} ...`"
        assert advice in answer.err.splitlines()[-1], (path, option, answer.err)


@pytest.mark.parametrize(
    ("command", "advice"),
    [
        (("--store=x", "submit", "k"), "--store comes after the command: `perdure submit --store ...`"),
        (("task", "--store", "x", "list"), "--store comes after the command: `perdure task list --store ...`"),
        (("--store", "x"), "--store comes after a command, as in `perdure dev --store ...`"),
        (("--xyzzy", "x", "submit"), "No such option: --xyzzy"),
        (("--run-at", "x", "doctor"), "No such option: --run-at"),
        (("task", "list", "--debug"), "--debug comes before the command: `perdure --debug task list ...`"),
        (("submit", "k", "--deadline", "3"), "No such option: --deadline; did you mean --execution-limit?"),
        (("job", "list", "--deadline", "3"), "No such option: --deadline"),
    ],
)
def test_what_is_told_of_an_option_that_is_not_known(perdure: Perdure, command: tuple[str, ...], advice: str) -> None:
    answer = perdure(*command)
    assert answer.code == 2
    [line] = answer.err.splitlines()
    assert line.startswith(f"perdure: {advice} (see `perdure "), line
