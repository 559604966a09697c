"""Errors as data: the failure that is kept of an exception, bounded and safe to store anywhere."""

import traceback
from pathlib import Path
from types import TracebackType

from perdure.domain.limits import ERROR_MAX_BYTES
from perdure.domain.outcome import Failure

MESSAGE_MAX_BYTES = 4 * 1024
TYPE_MAX_BYTES = 256
CUT = "\n... (cut) ...\n"
_HERE = str(Path(__file__).parent)


def clipped(text: str, max_bytes: int) -> str:
    """The text in at most `max_bytes` of UTF-8, its middle cut out where it is longer; without NULs or half
    characters.
    """
    data = text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace")
    if len(data) <= max_bytes:
        return data.decode()
    room = max(0, max_bytes - len(CUT))
    head = data[: room // 3].decode("utf-8", "ignore")
    tail = data[len(data) - (room - room // 3) :].decode("utf-8", "ignore")
    return f"{head}{CUT}{tail}"


def failure(type_name: str, message: str, trace: str = "") -> Failure:
    """A failure within the limits."""
    message = clipped(message, MESSAGE_MAX_BYTES)
    room = ERROR_MAX_BYTES - TYPE_MAX_BYTES - len(message.encode())
    return Failure(clipped(type_name, TYPE_MAX_BYTES), message, clipped(trace, room))


def failure_of(error: BaseException) -> Failure:
    """The failure that stands for an exception: qualified type, message, and the traceback from the handler on."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    try:
        message = str(error)
    except Exception as broken:
        message = f"(its message cannot be had: {type(broken).__name__})"
    try:
        lines = traceback.format_exception(kind, error, _from_handler(error.__traceback__))
        trace = "".join(lines)
    except Exception as broken:
        trace = f"(its traceback cannot be had: {type(broken).__name__})"
    return failure(name, message, trace)


def _from_handler(trace: TracebackType | None) -> TracebackType | None:
    """The part of a traceback that is the user's: without the frames of the worker that called the handler."""
    first = trace
    while first is not None and first.tb_frame.f_code.co_filename.startswith(_HERE):
        first = first.tb_next
    return first or trace
