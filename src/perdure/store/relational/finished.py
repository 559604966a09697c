"""Awaitables that are over already: awaiting them never lets the event loop run anything else."""

from collections.abc import Generator
from typing import Any

from perdure.flush import Call


class Finished:
    """The answer of a call that was flushed at once."""

    __slots__ = ("_call",)

    def __init__(self, call: Call) -> None:
        self._call = call

    def __await__(self) -> Generator[Any, None, list[Any]]:
        if self._call.error is not None:
            raise self._call.error
        return self._call.results or []
        yield


class Answered:
    """The answer to a question that was asked at once."""

    __slots__ = ("_answer",)

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def __await__(self) -> Generator[Any, None, Any]:
        return self._answer
        yield
