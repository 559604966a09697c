"""What a handler holds of its task: `Context` for async handlers, `SyncContext` for plain functions in threads.

Both have the same names. Whatever only reads, and `progress` and `phase`, which never wait, are plain in both; `part`,
`checkpoint`, `add_tasks`, `map` and `wait_cancelled` are awaited in a `Context` and block in a `SyncContext`.
"""

import asyncio
import hashlib
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from perdure.ambient import Clock
from perdure.domain.attempt import Part
from perdure.domain.limits import CHECKPOINT_MAX_BYTES, PART_MAX_BYTES
from perdure.domain.task import Body
from perdure.engine.quantities import check_timeout
from perdure.engine.requests import NewTask
from perdure.errors import Invalid, TooLarge
from perdure.store.job_ledger import Grown
from perdure.worker import adding
from perdure.worker.held import HeldAttempt
from perdure.worker.knowledge import AttemptKnowledge, Inputs
from perdure.worker.reporting import Reporter
from perdure.worker.results import BadResult, encode_result
from perdure.worker.work_source import WorkSource

T = TypeVar("T")
BINARY = "binary"
"""The encoding of parts that are given as bytes."""


class Context(AttemptKnowledge):
    """What an async handler holds of its task. A parameter annotated with it receives it."""

    __slots__ = ("_acknowledged", "_naming", "_parts_turn")

    def __init__(
        self,
        held: HeldAttempt,
        source: WorkSource,
        reporter: Reporter,
        clock: Clock,
        inputs: Inputs,
    ) -> None:
        super().__init__(held, source, reporter, clock, inputs)
        self._parts_turn = asyncio.Lock()
        self._acknowledged: set[str] = set()
        """The keys of this attempt's parts: one that comes again is no new part."""
        self._naming = adding.Naming(held.lease.name)

    async def part(self, data: Any, key: str | None = None, *, final: bool = False) -> bool:
        """Store a piece of the result and wait for its acknowledgement. False: an equal part of this key was there.

        `data` is bytes or any value that becomes JSON, at most 256 KiB. A `key` is unique within the task, so that the
        retry of a handler repeats its parts without harm. The last part is sent with `final`: nothing may follow it,
        and without it the handler's success is refused.
        Raises `LeaseLost`, `TooLarge`, and `Conflict` when the key has other data.
        """
        body = _part_body(data)
        async with self._parts_turn:
            sequence = self._held.parts_sent + 1
            part = Part(
                sequence,
                key if key is not None else f"part-{sequence}",
                key is not None,
                hashlib.sha256(body.data).hexdigest(),
                body,
                final,
            )
            answer = await self._reporter.send_part(self._held, part)
            if part.key not in self._acknowledged:
                self._acknowledged.add(part.key)
                self._held.parts_sent = sequence
            return not answer.replayed

    async def checkpoint(self, value: Any) -> None:
        """Keep a small value (64 KiB of JSON) for later attempts of this generation; they find it in `checkpointed`.

        Returns when it is stored. Raises `LeaseLost`.
        """
        await self._reporter.send_checkpoint(self._held, _checkpoint_text(value))

    async def add_tasks(
        self, tasks: Sequence[adding.Addable], *, after: Sequence[str] = (), before: Sequence[str] = ()
    ) -> dict[str, str]:
        """Add tasks to this task's own job, all of them or none, and return their ids by name.

        Each is `task.call(...)`, or a `NewTask` that also says its name, what it depends on and what it is bound to.
        They all go `after` tasks of the job, in any state, and `before` tasks that depend on this one: those wait for
        them too. Without `after`, they may begin at once, while this one still runs.

        Whoever adds the same again, after a lost answer or in the next attempt, adds nothing twice: tasks are known by
        name, and without one they are named after this task and their kind, in the order in which they are added.
        Raises `Conflict` where the job has another task of that name, where this task has no job, or is being
        cancelled; `Invalid` for circles and what is beyond the limits of a job; `Overloaded`; `LeaseLost`.
        """
        requests = adding.requested(tasks, self._naming, after, before)
        return (await self._add(requests)).task_ids if requests else {}

    async def map(
        self,
        task: adding.Target,
        items: Iterable[Any],
        *,
        reduce: adding.Target | None = None,
        into: str | None = None,
        name: str | None = None,
        after: Sequence[str] = (),
        before: Sequence[str] = (),
    ) -> adding.Mapped:
        """Add one task for each item to this task's own job, and one more that gets all their results, in their order.

        An item is the first argument of `task`, or its fields if it is a dict; for a kind that is given by name, it is
        the payload. The results go to the field `into` of `reduce`, by default its first; a `reduce` that is given by
        name without `into` reads them from `ctx.parents`. `name` begins the names of the mapped tasks in the place of
        what is usual. Those in `before` wait for `reduce`, without it for all. Otherwise as `add_tasks`.
        """
        requests, names, last = adding.mapped(task, list(items), reduce, into, self._naming, name, after, before)
        return adding.Mapped(names, last, (await self._add(requests)).task_ids if requests else {})

    async def _add(self, requests: Sequence[NewTask]) -> Grown:
        return await adding.add(self._source, self._reporter, self._held, self._clock, requests)

    async def settle_within_async(self, connection: Any, value: Any = None, summary: str | None = None) -> None:
        """See `settle_within`: through a connection that is awaited too, without holding the event loop up."""
        settle, result = self._settle_by("settle_within_async"), self._success(value, summary)
        await settle(connection, self._held.hold, msgspec.Raw(result.result.data), result.summary)
        self.settled = result

    async def wait_cancelled(self) -> None:
        """Wait until the handler shall stop. For tasks beside the handler: the handler itself is cancelled then."""
        await self._held.stop_asked()


class SyncContext(AttemptKnowledge):
    """What a plain function in a thread holds of its task: `Context`, where waiting blocks the thread.

    Nobody can stop a thread: a handler that runs long looks at `cancelled` in its loops.
    """

    __slots__ = ("_context", "_loop")

    def __init__(self, context: Context, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(context._held, context._source, context._reporter, context._clock, context._inputs)
        self._context = context
        self._loop = loop
        context._held.stop_flag()

    def part(self, data: Any, key: str | None = None, *, final: bool = False) -> bool:
        """See `Context.part`."""
        return self._wait(self._context.part(data, key, final=final))

    def checkpoint(self, value: Any) -> None:
        """See `Context.checkpoint`."""
        self._wait(self._context.checkpoint(value))

    def add_tasks(
        self, tasks: Sequence[adding.Addable], *, after: Sequence[str] = (), before: Sequence[str] = ()
    ) -> dict[str, str]:
        """See `Context.add_tasks`."""
        return self._wait(self._context.add_tasks(tasks, after=after, before=before))

    def map(
        self,
        task: adding.Target,
        items: Iterable[Any],
        *,
        reduce: adding.Target | None = None,
        into: str | None = None,
        name: str | None = None,
        after: Sequence[str] = (),
        before: Sequence[str] = (),
    ) -> adding.Mapped:
        """See `Context.map`."""
        options: dict[str, Any] = {"into": into, "name": name, "after": after, "before": before}
        return self._wait(self._context.map(task, items, reduce=reduce, **options))

    def wait_cancelled(self, timeout: float | None = None) -> bool:
        """Sleep for `timeout` seconds, or until the handler shall stop: then it returns true at once."""
        asked = self._held.stop_flag().wait(check_timeout(timeout))
        self._held.seen = self._held.seen or asked
        return asked

    def _wait(self, awaited: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(awaited, self._loop).result()


def _part_body(data: Any) -> Body:
    if isinstance(data, bytes | bytearray | memoryview):
        body = Body(bytes(data), BINARY)
    else:
        try:
            body = encode_result(data, max_bytes=PART_MAX_BYTES, what="part")
        except BadResult as error:
            raise Invalid(str(error), field="data") from error
    if len(body.data) > PART_MAX_BYTES:
        raise TooLarge(
            f"a part has at most {PART_MAX_BYTES} bytes, not {len(body.data)}: split it",
            limit_bytes=PART_MAX_BYTES,
            actual_bytes=len(body.data),
        )
    return body


def _checkpoint_text(value: Any) -> str:
    try:
        data = encode_result(value, max_bytes=1 << 40, what="checkpoint").data
    except BadResult as error:
        raise Invalid(str(error), field="checkpoint") from error
    if len(data) > CHECKPOINT_MAX_BYTES:
        raise TooLarge(
            f"a checkpoint has at most {CHECKPOINT_MAX_BYTES} bytes, not {len(data)}: keep the rest elsewhere",
            limit_bytes=CHECKPOINT_MAX_BYTES,
            actual_bytes=len(data),
        )
    return data.decode()
