"""Numbers as command lines write them: ASCII digits, as everywhere. Python alone takes `1_0`, ` 5` and `٥`."""

import copy
import re
from typing import Any

_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WORDS = {"int": (_WHOLE, "a whole number"), "float": (_NUMBER, "a number")}


def number(text: str) -> float | None:
    """The number that a text is, and nothing else beside it."""
    return float(text) if _NUMBER.fullmatch(text) else None


def whole(text: str) -> int | None:
    """The whole number without a sign that a text is, and nothing else beside it."""
    return int(text) if text.isascii() and text.isdecimal() else None


def take_plain_numbers(command: Any) -> None:
    """Have every number of a command, and of those below it, be written plainly."""
    for below in getattr(command, "commands", {}).values():
        take_plain_numbers(below)
    for each in command.params:
        sort = _WORDS.get(each.type.name.removesuffix(" range").replace("integer", "int"))
        if sort is not None:
            each.type = _plain(each.type, *sort)


def _plain(type: Any, form: re.Pattern[str], words: str) -> Any:
    """The same type of an option, which looks at the text first. Types are shared: this is a copy."""
    import typer

    plain, convert = copy.copy(type), type.convert

    def checked(value: Any, param: Any, ctx: Any) -> Any:
        if isinstance(value, str) and not form.fullmatch(value):
            raise typer.BadParameter(f"{value!r} is not {words}", ctx=ctx, param=param)
        return convert(value, param, ctx)

    plain.convert = checked
    return plain
