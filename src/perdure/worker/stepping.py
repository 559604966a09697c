"""Running a handler's coroutine without a task of its own.

The first step is taken at once; a handler that never waits is then done, at the price of a function call. One that
waits goes on inside the lane's task: what it yields is passed up to that task, and each step runs in the handler's own
`contextvars` context, so that nothing it sets is seen by the lane's next handler. `asyncio.current_task()` is the
lane's task in every step, which is what time-outs, task groups and cancellation need.
"""

from collections.abc import Coroutine, Generator
from contextvars import Context
from typing import Any


class RestOf:
    """Awaiting it runs the rest of a coroutine that has yielded `waits_for` in its first step."""

    __slots__ = ("_context", "_coroutine", "_waits_for")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], context: Context, waits_for: Any) -> None:
        self._coroutine = coroutine
        self._context = context
        self._waits_for = waits_for

    def __await__(self) -> Generator[Any, Any, Any]:
        waits_for, run, coroutine = self._waits_for, self._context.run, self._coroutine
        answer: Any = None
        while True:
            try:
                answer = yield waits_for
            except GeneratorExit:
                run(coroutine.close)
                raise
            except BaseException as error:
                thrown: BaseException | None = error
            else:
                thrown = None
            try:
                waits_for = run(coroutine.send, answer) if thrown is None else run(coroutine.throw, thrown)
            except StopIteration as ended:
                return ended.value
            except GeneratorExit as error:
                raise raised_generator_exit() from error


def raised_generator_exit() -> RuntimeError:
    """Stands for a `GeneratorExit` that came out of a handler: to its caller it would look like its own end."""
    return RuntimeError("the handler raised GeneratorExit")
