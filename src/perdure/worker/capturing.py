"""How what a handler logs becomes the log of its task: by `ctx.logger`, and by `logging` wherever the handler's own
context reaches (its coroutine, its thread, tasks that it starts, `asyncio.to_thread`).

Records are seen where `logging` makes them. So no handler is added to anybody's loggers, and what the program's own
configuration keeps silent stays silent there.
"""

import contextlib
import logging
import sys
import traceback
from collections.abc import Callable, MutableMapping
from contextvars import ContextVar
from typing import Any, NamedTuple

from perdure.domain.attempt import LOG_LEVELS

_LEVELS = logging.getLevelNamesMapping()
_OWN, _OF_TASKS = "perdure.", "perdure.task."


class Capture(NamedTuple):
    """Where the lines of one attempt go: `note` takes level and text, from any thread, and never waits."""

    note: Callable[[str, str], None]
    least: int
    """The least severe level that is kept."""

    def take(self, record: logging.LogRecord) -> None:
        """Keep a record, if it is severe enough."""
        if record.levelno >= self.least:
            self.note(_level(record.levelno), _text(record))


_current: ContextVar[Capture | None] = ContextVar("perdure_capture", default=None)


def begin(capture: Capture | None) -> None:
    """Capture what is logged in the calling context from now on."""
    _current.set(capture)


def least_level(name: str) -> int | None:
    """The number of the least severe level that is kept; `None` for `off`."""
    return _LEVELS.get(name.upper())


def watch_records() -> None:
    """See the records of this process from now on. Harmless when done already."""
    made_by = logging.getLogRecordFactory()
    if not isinstance(made_by, _Watching):
        logging.setLogRecordFactory(_Watching(made_by))


class _Watching:
    """A factory of records that shows them to whoever captures in the context in which they are made."""

    def __init__(self, made_by: Callable[..., logging.LogRecord]) -> None:
        self._made_by = made_by

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        capture = _current.get()
        if capture is None:
            return self._made_by(*args, **kwargs)
        # Seen once, also where another program's factory wraps this one and is wrapped again.
        token = _current.set(None)
        try:
            record = self._made_by(*args, **kwargs)
        finally:
            _current.reset(token)
        if _is_users(record.name):
            # Whatever happens here is no reason for a handler to fail.
            with contextlib.suppress(Exception):
                capture.take(record)
        return record


class TaskLogger(logging.LoggerAdapter[logging.Logger]):
    """`ctx.logger`: what it logs is kept with the task whatever `logging` is configured to write."""

    def __init__(self, logger: logging.Logger, fields: dict[str, Any], capture: Capture | None) -> None:
        super().__init__(logger, fields)
        self._capture = capture

    def isEnabledFor(self, level: int) -> bool:
        """Whether a line of this level goes anywhere."""
        return self.logger.isEnabledFor(level) or (self._capture is not None and level >= self._capture.least)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """The fields of the attempt, beside those that are given."""
        kwargs["extra"] = {**(kwargs.get("extra") or {}), **(self.extra or {})}
        return msg, kwargs

    def log(self, level: int, msg: object, *args: Any, **kwargs: Any) -> None:
        """Log a line: to the program's own loggers where they want it, and to the task's log."""
        if not self.logger.isEnabledFor(level):
            if self._capture is not None and level >= self._capture.least:
                with contextlib.suppress(Exception):
                    self._capture.take(_record(self.logger.name, level, msg, args, kwargs))
            return
        kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1
        token = _current.set(self._capture)
        try:
            super().log(level, msg, *args, **kwargs)
        finally:
            _current.reset(token)


def _is_users(name: str | None) -> bool:
    return bool(name) and (not f"{name}.".startswith(_OWN) or f"{name}.".startswith(_OF_TASKS))


def _record(name: str, level: int, msg: object, args: Any, kwargs: dict[str, Any]) -> logging.LogRecord:
    error = kwargs.get("exc_info")
    if isinstance(error, BaseException):
        error = (type(error), error, error.__traceback__)
    elif error and not isinstance(error, tuple):
        error = sys.exc_info()
    return logging.LogRecord(name, level, "", 0, msg, args, error or None)


def _level(number: int) -> str:
    """The closest of the usual levels that is not more severe."""
    return next((name for name in reversed(LOG_LEVELS) if number >= _LEVELS[name.upper()]), LOG_LEVELS[0])


def _text(record: logging.LogRecord) -> str:
    """The message, and the traceback under it. Nothing is kept on the record: others format it in their own way."""
    try:
        text = record.getMessage()
    except Exception:
        text = f"{record.msg} (its arguments do not fit: {record.args!r})"
    if record.exc_info and record.exc_info[1] is not None:
        text += "\n" + "".join(traceback.format_exception(record.exc_info[1])).rstrip("\n")
    return text
