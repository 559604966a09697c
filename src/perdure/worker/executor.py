"""Runs one held attempt to its outcome. Nothing that a handler raises gets past it."""

import asyncio
import contextvars
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from perdure.ambient import Clock
from perdure.domain.limits import SECOND_US
from perdure.domain.outcome import HandedBack, NotStarted, Outcome
from perdure.errors import LeaseLost, PerdureError, Unavailable
from perdure.store.ledger import ParentResult
from perdure.telemetry.tracer import Tracer
from perdure.worker import capturing, tracing
from perdure.worker.context import Context, SyncContext
from perdure.worker.handler import Handler
from perdure.worker.held import HeldAttempt, StopReason
from perdure.worker.judging import bad_payload, outcome_of_error, outcome_of_stop, outcome_of_value
from perdure.worker.knowledge import Inputs
from perdure.worker.payload import BadPayload
from perdure.worker.reporting import Reporter
from perdure.worker.stepping import RestOf, raised_generator_exit
from perdure.worker.threads import HandlerThreads
from perdure.worker.work_source import WorkSource

NO_INPUTS: Mapping[str, ParentResult] = {}
INPUTS_RETRY_SECONDS = 0.2


class Executor:
    """`suspended` is called when a handler begins to wait: then another one may run. `stop` asks an attempt to stop."""

    def __init__(
        self,
        source: WorkSource,
        reporter: Reporter,
        clock: Clock,
        default_timeout: float | None,
        suspended: Callable[[], None],
        stop: Callable[[HeldAttempt, StopReason], None],
        tracer: Tracer | None = None,
    ) -> None:
        self._source = source
        self._reporter = reporter
        self._clock = clock
        self._default_timeout_us = None if default_timeout is None else round(default_timeout * SECOND_US)
        self._suspended = suspended
        self._stop = stop
        self._tracer = tracer
        self._loop = asyncio.get_running_loop()
        self._threads = HandlerThreads()

    def close(self) -> None:
        """Let idle threads go."""
        self._threads.shutdown()

    async def execute(self, held: HeldAttempt) -> Outcome | None:
        """Run the handler in the calling task. `None`: the lease was lost, nothing counts any more."""
        lease, handler = held.lease, held.handler
        told: Context | SyncContext | None = None
        try:
            if held.stop_reason is not None or lease.start_within_us is not None:
                early = self._last_look(held)
                if early is not None or held.stop_reason is not None:
                    return early
            inputs: Inputs = NO_INPUTS
            filled: dict[str, Any] | None = None
            if lease.parents:
                inputs, filled = await self._from_parents(held)
            arguments = handler.convert(lease.payload, lease.kind, filled)
            if handler.context_name is not None:
                arguments[handler.context_name] = told = self._context(held, inputs)
            now_us = self._clock.monotonic_us()
            if now_us >= held.until_us:
                # The claim's answer, or the parents' results, came after the lease: the task may run elsewhere by now.
                return HandedBack()
            held.started_us = now_us
            run = self._run_async if handler.is_async else self._run_in_thread
            value = await run(held, handler, arguments)
            if told is not None and told.settled is not None and held.stop_reason is None:
                return told.settled
            return outcome_of_value(held, value)
        except BadPayload as error:
            return bad_payload(error)
        except GeneratorExit:
            raise
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and held.started_us is None:
                raise  # not the handler's
            return outcome_of_error(held, error)

    def _context(self, held: HeldAttempt, inputs: Inputs) -> Context | SyncContext:
        context = Context(held, self._source, self._reporter, self._clock, inputs)
        return context if held.handler.is_async else SyncContext(context, self._loop)

    def _last_look(self, held: HeldAttempt) -> Outcome | None:
        if held.stop_reason is not None:
            return outcome_of_stop(held)
        within_us = held.lease.start_within_us
        if within_us is not None and self._clock.monotonic_us() >= held.sent_us + within_us:
            return NotStarted()
        return None

    async def _run_async(self, held: HeldAttempt, handler: Handler, arguments: dict[str, Any]) -> Any:
        own = self._own_context(held)
        coroutine = own.run(handler.call, arguments)
        try:
            waits_for = own.run(coroutine.send, None)
        except StopIteration as ended:
            return ended.value
        except GeneratorExit as error:
            raise raised_generator_exit() from error
        timer = self._arm(held)
        held.on_stop = held.cancel_lane
        self._suspended()
        try:
            return await RestOf(coroutine, own, waits_for)
        finally:
            held.on_stop = None
            timer.cancel()

    async def _run_in_thread(self, held: HeldAttempt, handler: Handler, arguments: dict[str, Any]) -> Any:
        own = self._own_context(held)
        job = functools.partial(own.run, _call_plain, handler, arguments)
        timer = self._arm(held)
        held.on_stop = _leave_to_flag
        future = self._loop.run_in_executor(self._threads, job)
        self._suspended()
        try:
            value, error = await future
        finally:
            held.on_stop = None
            timer.cancel()
        if error is not None:
            raise error
        return value

    def _own_context(self, held: HeldAttempt) -> contextvars.Context:
        """A context for the handler alone, in which what is logged is captured and its span is the one under way."""
        own = contextvars.copy_context()
        capture = self._reporter.capture(held)
        if capture is not None:
            own.run(capturing.begin, capture)
        tracing.begin(self._tracer, held, own)
        return own

    def _arm(self, held: HeldAttempt) -> asyncio.TimerHandle:
        """Have the attempt stopped at its timeout or deadline, whichever comes first. The timeout counts from the
        handler's start, the deadline from the claim's answer, so that the store agrees that it has passed.
        """
        now_us = self._clock.monotonic_us()
        deadline_us = held.answered_us + held.lease.deadline_us
        timeout_us = self.timeout_us(held)
        if timeout_us is not None and (held.started_us or now_us) + timeout_us < deadline_us:
            return self._loop.call_later(timeout_us / SECOND_US, self._stop, held, StopReason.TIMEOUT)
        delay = max(0, deadline_us - now_us) / SECOND_US
        return self._loop.call_later(delay, self._stop, held, StopReason.DEADLINE)

    def timeout_us(self, held: HeldAttempt) -> int | None:
        """The task's timeout, else its kind's, else this worker's."""
        if held.lease.timeout_us is not None:
            return held.lease.timeout_us
        own = held.handler.defaults.timeout
        return self._default_timeout_us if own is None else round(own * SECOND_US)

    async def _from_parents(self, held: HeldAttempt) -> tuple[Inputs, dict[str, Any] | None]:
        """The parents' results where the handler may look at them, and the payload fields that they fill.

        Where no field needs them, results that cannot be had are no reason to fail: a handler that looks is told.
        """
        bindings = _bindings(held.lease.options)
        if not bindings and held.handler.context_name is None:
            return NO_INPUTS, None
        try:
            inputs = await self._inputs(held)
        except BadPayload as error:
            if bindings:
                raise
            return error, None
        return inputs, _filled(bindings, inputs) if bindings else None

    async def _inputs(self, held: HeldAttempt) -> Mapping[str, ParentResult]:
        """The parents' results; asked for again while the source is away, as long as the lease lasts."""
        held.on_stop = held.cancel_lane
        try:
            while True:
                try:
                    return await self._source.inputs(held.hold)
                except Unavailable:
                    await asyncio.sleep(INPUTS_RETRY_SECONDS)
                except LeaseLost:
                    held.ask_to_stop(StopReason.LOST)
                    raise
                except PerdureError as error:
                    raise BadPayload(f"the parents' results cannot be had: {error}", "parents") from error
        finally:
            held.on_stop = None


def _call_plain(handler: Handler, arguments: dict[str, Any]) -> tuple[Any, BaseException | None]:
    """A plain handler's value or error as data: a future would not take every exception."""
    try:
        value = handler.call(arguments)
    except GeneratorExit:
        return None, raised_generator_exit()
    except BaseException as error:
        return None, error
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        return None, TypeError("a plain function returned an awaitable: make the handler an async function")
    return value, None


def _leave_to_flag() -> None:
    """A thread cannot be stopped: its handler sees `ctx.cancelled`."""


def _bindings(options: str | None) -> dict[str, str | list[str]]:
    """The payload fields that parents fill, each with the parent's name or a list of names."""
    return {} if options is None else msgspec.json.decode(options).get("bindings") or {}


def _filled(bindings: Mapping[str, str | list[str]], inputs: Mapping[str, ParentResult]) -> dict[str, Any]:
    """The payload fields that parents' results fill; null where a parent has none."""
    return {
        field: _result_of(bound, field, inputs)
        if isinstance(bound, str)
        else [_result_of(parent, field, inputs) for parent in bound]
        for field, bound in bindings.items()
    }


def _result_of(parent: str, field: str, inputs: Mapping[str, ParentResult]) -> msgspec.Raw | None:
    given = inputs.get(parent)
    if given is None:
        raise BadPayload(f"the result of {parent!r}, which should fill it, is not there", field)
    return None if given.result is None else msgspec.Raw(given.result.data)
