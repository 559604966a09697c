"""Finding the item at fault in a flush that failed, so that it costs nobody else anything.

The whole flush is one transaction. When it fails by the fault of an item, it is done again in parts: each operation for
itself, then halves of its calls, then halves of the one call's items, each part a transaction of its own, until the
item at fault stands alone. No savepoint is paid for in the good case.
"""

from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

from perdure.errors import PerdureError
from perdure.flush import Call


class Blame(NamedTuple):
    """How a store tells whose fault an error is."""

    is_store_fault: Callable[[BaseException], bool]
    """No item could have been written: every call of the flush gets the error."""
    is_data_fault: Callable[[BaseException], bool]
    """The same transaction without the item at fault would have worked."""
    translate: Callable[[BaseException], BaseException]
    """The error of perdure for what was raised beneath."""


def commit(groups: list[list[Call]], transact: Callable[[list[list[Call]]], None], blame: Blame) -> None:
    """Run groups of calls by `transact`, which answers all of them or raises and has changed nothing.

    What is not the store's fault becomes the answer of the call at fault; the store's is raised.
    """
    try:
        transact(groups)
    except Exception as error:
        if blame.is_store_fault(error):
            raise
        if len(groups) > 1:
            for group in groups:
                commit([group], transact, blame)
        else:
            _isolate(groups[0], error, transact, blame)


def _isolate(calls: list[Call], error: Exception, transact: Callable[[list[list[Call]]], None], blame: Blame) -> None:
    if len(calls) > 1:
        middle = len(calls) // 2
        commit([calls[:middle]], transact, blame)
        commit([calls[middle:]], transact, blame)
        return
    (call,) = calls
    if len(call.items) == 1 or not blame.is_data_fault(error):
        call.error = blame.translate(error)
        return
    middle = len(call.items) // 2
    halves = [Call(call.operation, part) for part in (call.items[:middle], call.items[middle:])]
    for half in halves:
        commit([[half]], transact, blame)
    call.results = [result for half in halves for result in _results(half)]


def _results(half: Call) -> list[Any]:
    if half.results is not None:
        return half.results
    assert half.error is not None
    return [own(half.error) for _ in half.items]


def own(error: BaseException) -> BaseException:
    """The error for one of several callers, who raise it on threads of their own and may add to it."""
    if not isinstance(error, PerdureError):
        return error
    copied = copy(error)
    copied.__cause__ = error.__cause__
    return copied
