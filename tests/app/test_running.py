"""Workers of an app: how they start, how they end, and what signals do."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap

import pytest

import perdure

PROGRAM = textwrap.dedent(
    """
    import asyncio, logging, sys
    import perdure

    logging.basicConfig(stream=sys.stdout, format="%(message)s")
    logging.getLogger("perdure.run").setLevel("INFO")
    app = perdure.App(sys.argv[1])

    @app.task("slow")
    async def slow(seconds: float) -> str:
        print("started", flush=True)
        await asyncio.sleep(seconds)
        return "done"

    @app.task("stubborn")
    def stubborn() -> None:
        print("started", flush=True)
        while True:
            pass

    asyncio.run(app.run(concurrency=2, grace=float(sys.argv[2])))
    print("ended", flush=True)
    """
)


@pytest.fixture
def start(tmp_path):
    processes = []

    def start(grace: float) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", PROGRAM, str(tmp_path / "app.db"), str(grace)]
        processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


async def _line(process: subprocess.Popen[str]) -> str:
    return (await asyncio.to_thread(process.stdout.readline)).strip()


async def _last_line(process: subprocess.Popen[str]) -> str:
    return (await asyncio.to_thread(process.stdout.read)).splitlines()[-1]


async def test_the_first_signal_lets_what_runs_finish(app, start):
    process = start(grace=30)
    async with app:
        handle = await app.submit("slow", seconds=0.5)
        assert await _line(process) == "started"
        process.send_signal(signal.SIGTERM)
        assert (await _line(process)).startswith("SIG")
        assert await _last_line(process) == "ended"
        assert process.wait(10) == 0
        assert await handle.result(0) == "done"


async def test_what_does_not_finish_within_the_grace_is_handed_back(app, start):
    process = start(grace=0.2)
    async with app:
        handle = await app.submit("slow", seconds=60)
        assert await _line(process) == "started"
        process.send_signal(signal.SIGINT)
        assert (await _line(process)).startswith("SIG")
        assert await _last_line(process) == "ended"
        assert process.wait(20) == 0
        view = await handle.status()
        assert (view.state, view.attempt) == ("queued", 1)
        assert [attempt.state for attempt in await handle.attempts()] == ["released"]


async def test_a_second_signal_ends_at_once(app, start):
    process = start(grace=3_600)
    async with app:
        handle = await app.submit("stubborn")
        assert await _line(process) == "started"
        process.send_signal(signal.SIGTERM)
        assert (await _line(process)).startswith("SIGTERM: draining")
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 10) == 128 + signal.SIGTERM
        assert (await handle.status()).state in ("leased", "running")


async def test_a_worker_that_cannot_start_says_so_at_the_start(app):
    async with app:
        with pytest.raises(perdure.Misuse, match="no option 'speed'"):
            await app.worker(speed=9).run()
        with pytest.raises(perdure.Invalid) as refused:
            async with app.worker(concurrency=0):
                pass
        assert refused.value.field == "concurrency"


async def test_a_worker_runs_once(app):
    async with app:
        worker = app.worker()
        async with worker:
            pass
        with pytest.raises(perdure.Misuse, match="a worker runs once"):
            await worker.run()


async def test_a_worker_drained_before_it_starts_does_nothing(app):
    async with app:
        worker = app.worker()
        worker.drain()
        assert await worker.run() is None


async def test_only_the_main_thread_runs_until_a_signal(app):
    with pytest.raises(perdure.Misuse, match="only the main thread"):
        await asyncio.to_thread(asyncio.run, app.run())


async def test_the_duties_are_there_to_be_run_by_hand(app):
    async with app:
        names = {duty.name for duty in await app.duties()}
        assert {"promote", "expire", "cascade", "retain"} <= names


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_opens_the_store_anew(app):
    async def submit() -> str:
        return (await app.submit("add", left=1)).id

    async def fork_and_submit() -> tuple[str, str]:
        async with app:
            await submit()
            read, write = os.pipe()
            child = os.fork()
            if child == 0:
                _in_child(write)
            os.close(write)
            with os.fdopen(read) as pipe:
                said = await asyncio.to_thread(pipe.read)
            os.waitpid(child, 0)
            return said, (await app.handle(said).status()).state

    def _in_child(write: int) -> None:
        try:
            asyncio.events._set_running_loop(None)
            os.write(write, asyncio.run(submit()).encode())
        except BaseException as error:
            os.write(write, repr(error).encode())
        finally:
            os._exit(0)

    assert asyncio.run(fork_and_submit())[1] == "queued"
