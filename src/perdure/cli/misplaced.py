"""Options that a command does not know: where they belong, or what they are called."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

OTHER_WORDS: Mapping[str, str] = MappingProxyType({"--deadline": "--execution-limit"})
"""What an option may be taken to be called, since what it sets is shown under that word."""


def advice_on(problem: Any, arguments: Sequence[str]) -> str | None:
    """What is to be told of an option that a command does not know, if more than that is known of it."""
    said, context = getattr(problem, "option_name", None), getattr(problem, "ctx", None)
    if not isinstance(said, str) or context is None:
        return None
    meant = OTHER_WORDS.get(said)
    if meant is not None and _option(context.command, meant) is not None:
        return f"No such option: {said}; did you mean {meant}?"
    return _of_a_command_below(said, context, arguments) or _of_a_command_above(said, context)


def _of_a_command_below(said: str, context: Any, arguments: Sequence[str]) -> str | None:
    knowing = dict(_knowing(context.command, said, context.command_path))
    if not knowing:
        return None
    named = _named(context, said, next(iter(knowing.values())), arguments)
    if named is not None and named not in knowing and not any(path.startswith(f"{named} ") for path in knowing):
        return None
    path = named if named in knowing else None
    shown = f"`{path} {said} ...`" if path else f"`{next(iter(knowing))} {said} ...`"
    return f"{said} comes after the command: {shown}" if path else f"{said} comes after a command, as in {shown}"


def _of_a_command_above(said: str, context: Any) -> str | None:
    above = context.parent
    while above is not None:
        if _option(above.command, said) is not None:
            rest = context.command_path.removeprefix(above.command_path).strip()
            return f"{said} comes before the command: `{above.command_path} {said} {rest} ...`"
        above = above.parent
    return None


def _named(context: Any, said: str, option: Any, arguments: Sequence[str]) -> str | None:
    """The path of the command that stands after an option and its value."""
    at = next((index for index, each in enumerate(arguments) if each == said or each.startswith(f"{said}=")), None)
    if at is None:
        return None
    begin = at + 1 if option.is_flag or arguments[at] != said else at + 2
    command, path = context.command, None
    for word in arguments[begin:]:
        below = getattr(command, "commands", {}).get(word)
        if below is not None:
            command, path = below, f"{path or context.command_path} {word}"
    return path


def _knowing(command: Any, said: str, path: str) -> Iterator[tuple[str, Any]]:
    """The commands below one that know an option, by their paths."""
    for name, below in getattr(command, "commands", {}).items():
        option = _option(below, said)
        if option is not None:
            yield f"{path} {name}", option
        yield from _knowing(below, said, f"{path} {name}")


def _option(command: Any, said: str) -> Any:
    return next((each for each in command.params if said in each.opts and each.param_type_name == "option"), None)
