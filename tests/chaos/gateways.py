"""Cases in which the gateway dies and the links to it are bad: clients and workers are far away from the store."""

import asyncio
import contextlib
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

from chaos import deaths
from chaos.arena import Arena
from chaos.crew import Member
from chaos_proxy import READ_BYTES, ChaosProxy, Fault

LEASE = 5.0
STARTS_WITHIN = 60.0
REPLAYS = 3
REPLAYED = (b"POST /v1/worker/report", b"POST /v1/worker/settle", b"POST /v1/worker/renew", b"POST /v1/tasks")


class Serving:
    """A gateway process on one port, killed and started again, and the duties beside it."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.member: Member | None = None

    async def start(self) -> None:
        """Start it and wait until it answers."""
        self.member = self._arena.crew.serve("gateway", self.port)
        until = time.monotonic() + STARTS_WITHIN
        while time.monotonic() < until:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.close()
                return
            await asyncio.sleep(0.02)
        raise TimeoutError(f"the gateway did not start: {self.member.last_words()}")

    def kill(self) -> None:
        """End it at once, as a crash would."""
        assert self.member is not None
        self.member.kill()


@contextlib.asynccontextmanager
async def gateway_of(arena: Arena) -> AsyncIterator[Serving]:
    """A gateway, with the duties in a process of their own."""
    arena.crew.serve("sweeper", free_port())
    serving = Serving(arena)
    await serving.start()
    yield serving


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


async def killed_under_load(arena: Arena) -> None:
    """SIGKILL of the gateway every few seconds, while clients submit and remote workers run what was submitted."""
    kills = 3 if arena.quick else 8
    async with gateway_of(arena) as serving:
        workers = [arena.crew.worker(at=serving.url, concurrency=10) for _ in range(2)]
        clients = [
            arena.crew.client(
                arena.log.path,
                at=serving.url,
                do="submit",
                first=number * 10_000,
                count=10_000,
                patient=True,
                pause=0.02,
                options={"lease": LEASE},
                payload={"seconds": 0.1},
            )
            for number in range(2)
        ]
        await arena.until(lambda: arena.effects.count("end") >= 20, 60, "work is done through the gateway")
        for _ in range(kills):
            await asyncio.sleep(arena.random.uniform(0.5, 1.5) if arena.quick else arena.random.uniform(3.0, 10.0))
            serving.kill()
            await asyncio.sleep(arena.random.uniform(0.0, 1.0))
            await serving.start()
        for client in clients:
            client.kill()
        healed = time.monotonic()
        await arena.all_ended(LEASE + 60)
        arena.recovered(time.monotonic() - healed, LEASE + 45)
        for worker in workers:
            arena.check(worker.code is None, f"a worker ended with {worker.code} because its gateway was away")
    await _judge_runs(arena)
    arena.figure(kills=kills)


async def _judge_runs(arena: Arena) -> None:
    """Nobody ran without a lease, and what ran again did so because the store says that its lease was lost."""
    tasks = {each.id: each for each in await arena.tasks()}
    runs = arena.effects.by_task("start")
    again = {task_id: len(each) for task_id, each in runs.items() if len(each) > 1}
    for task_id, count in again.items():
        task = tasks.get(task_id)
        allowed = 0 if task is None else 1 + task.losses + task.attempt
        arena.check(count <= allowed, f"task {task_id} ran {count} times, its history allows {allowed}")
    states = Counter(str(each.state) for each in tasks.values())
    arena.check(set(states) <= {"succeeded"}, f"not all succeeded: {dict(states)}")
    acknowledged = len(arena.log.read("answered"))
    arena.figure(acknowledged=acknowledged, tasks=len(tasks), ran_again=len(again), unknown=len(arena.log.unknown()))
    await arena.judge()


async def rolling_deploy(arena: Arena) -> None:
    """The case of the deploy with workers of a gateway."""
    async with gateway_of(arena) as serving:
        await deaths.rolling_deploy(arena, serving.url)


async def answers_lost(arena: Arena) -> None:
    """Of one answer in five the client sees nothing, or half: all of it was done."""
    count = 60 if arena.quick else 1_500
    faults = [Fault.CUT_AFTER, Fault.CUT_WITHIN]

    def choose(request: bytes) -> Fault:
        return arena.random.choice(faults) if arena.random.random() < 0.2 else Fault.NONE

    async with gateway_of(arena) as serving, ChaosProxy(serving.url, choose) as proxy:
        began = time.monotonic()
        client = arena.crew.client(
            arena.log.path,
            at=proxy.url,
            do="submit",
            first=0,
            count=count,
            patient=True,
            options={"lease": LEASE, "max_losses": 100},
        )
        arena.crew.worker(at=proxy.url, concurrency=10)
        code = await asyncio.to_thread(client.wait, 100)
        arena.check(code == 0, f"the client ended with {code}")
        await arena.all_ended(LEASE + 90)
        arena.recovered(time.monotonic() - began, LEASE + 90)
        arena.figure(cut=proxy.done[Fault.CUT_AFTER] + proxy.done[Fault.CUT_WITHIN])
        arena.check(proxy.done[Fault.CUT_AFTER], "no answer was lost")
    tasks = await arena.tasks()
    arena.check(len(tasks) == count, f"{count} submits made {len(tasks)} tasks")
    await _judge_runs(arena)


class ReplayingProxy(ChaosProxy):
    """Sends every write again, three times, in another order, on other connections, long after it was answered."""

    def __init__(self, url: str, arena: Arena) -> None:
        super().__init__(url, self._remember)
        parts = urlsplit(url)
        self._place = parts.hostname, parts.port
        self._chance = arena.random
        self._seen: list[bytes] = []
        self.answers: Counter[int] = Counter()
        """Statuses of the answers to what was sent again."""

    def _remember(self, request: bytes) -> Fault:
        if request.startswith(REPLAYED) and _is_whole(request):
            self._seen.append(request)
        return Fault.NONE

    async def replay(self) -> None:
        """Send what has been seen so far again."""
        requests, self._seen = self._seen * REPLAYS, []
        self._chance.shuffle(requests)
        for request in requests:
            reader, writer = await asyncio.open_connection(*self._place)
            writer.write(request)
            head = await asyncio.wait_for(reader.read(READ_BYTES), 30)
            self.answers[int(head.split(b" ", 2)[1])] += 1
            writer.close()


def _is_whole(request: bytes) -> bool:
    head, _, body = request.partition(b"\r\n\r\n")
    return f"content-length: {len(body)}".encode() in head


async def parts_repeated(arena: Arena) -> None:
    """Reports, renewals, settles and submits arrive again, three times and in disorder, while the work goes on."""
    # In the short form none whose first attempt fails: a retry waits for seconds.
    first, count = (1, 2) if arena.quick else (0, 150)
    async with gateway_of(arena) as serving, ReplayingProxy(serving.url, arena) as proxy:
        began = time.monotonic()
        client = arena.crew.client(
            arena.log.path, at=proxy.url, do="submit", first=first, count=count, kind="busy", options={"lease": LEASE}
        )
        arena.crew.worker(at=proxy.url, concurrency=10)
        code = await asyncio.to_thread(client.wait, 60)
        arena.check(code == 0, f"the client ended with {code}")
        while await arena.open_tasks():
            await proxy.replay()
            await asyncio.sleep(0.1)
        before = await _ends(arena)
        await proxy.replay()
        arena.check(await _ends(arena) == before, "what was sent again after the end changed something")
        arena.recovered(time.monotonic() - began, 60)
        arena.check(proxy.answers.total(), "nothing was sent again")
        broken = {status: n for status, n in proxy.answers.items() if status >= 500}
        arena.check(not broken, f"what was sent again broke something: {broken}")
        arena.figure(sent_again=proxy.answers.total())
    tasks = await arena.tasks()
    arena.check(len(tasks) == count, f"{count} submits made {len(tasks)} tasks")
    for task in tasks:
        parts = [each for each in await (await arena.views()).parts("default", task.id) if not each.superseded]
        keys = sorted(each.key for each in parts)
        arena.check(keys == ["last", "one"], f"task {task.id} has the parts {keys}")
    await _judge_runs(arena)


async def _ends(arena: Arena) -> list[object]:
    """How everything ended, with all results and histories."""
    views = await arena.views()
    tasks = sorted(await arena.tasks(), key=lambda each: each.id)
    return [
        (await views.task("default", each.id), await views.parts("default", each.id), len(await _lines(arena, each.id)))
        for each in tasks
    ]


async def _lines(arena: Arena, task_id: str) -> list[object]:
    """The history without the bounded notes of results that came too late."""
    events = await (await arena.views()).events("default", task_id)
    return [each for each in events if each.type != "late_result"]


async def bad_links(arena: Arena) -> None:
    """One worker whose answers never arrive, one at 2 KB/s that begin after 0.8 s, and a client behind each; others are
    well. The links heal in the end.
    """
    count = 20 if arena.quick else 100
    healed = False

    def of(fault: Fault, share: float) -> ChaosProxy:
        def choose(request: bytes) -> Fault:
            return fault if not healed and arena.random.random() < share else Fault.NONE

        return ChaosProxy(serving.url, choose)

    async with gateway_of(arena) as serving, of(Fault.SWALLOW, 0.3) as deaf, of(Fault.TRICKLE, 1.0) as slow:
        for place, proxy in enumerate((deaf, slow)):
            arena.crew.worker(at=proxy.url, concurrency=5)
            arena.crew.client(
                arena.log.path,
                at=proxy.url,
                do="submit",
                first=place * 10_000,
                count=count,
                patient=True,
                options={"lease": LEASE, "max_losses": 100},
                payload={"seconds": 0.05},
            )
        arena.crew.worker(at=serving.url, concurrency=5)
        until = time.monotonic() + (20 if arena.quick else 90)
        while time.monotonic() < until:
            await asyncio.sleep(0.5)
        healed = True
        deaf.cut()
        began = time.monotonic()
        await arena.until(lambda: len(arena.log.read("answered")) == 2 * count, 120, "all submits are acknowledged")
        await arena.all_ended(LEASE + 60)
        arena.recovered(time.monotonic() - began, LEASE + 90)
        arena.check(deaf.done[Fault.SWALLOW] and slow.done[Fault.TRICKLE], "no link was bad")
        arena.figure(swallowed=deaf.done[Fault.SWALLOW], trickled=slow.done[Fault.TRICKLE])
    await _judge_runs(arena)
