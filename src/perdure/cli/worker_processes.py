"""Worker processes of a command: started, watched, replaced when they die, ended with it."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

from perdure.errors import Misuse

REPLACED_MAX = 5
"""How many dead workers are replaced before the command gives up."""
STOP_SECONDS = 10.0
"""How long workers may take to end once they are told to."""


def worker_command(target: str | None, concurrency: int, queues: Sequence[str]) -> list[str]:
    """The command line of one worker that runs no duties and ends with whoever started it.

    Its store is not named in it, where everybody on this machine could read a password: `PERDURE_STORE` names it.
    """
    command = [sys.executable, "-m", "perdure", "worker", "run"]
    if target is not None:
        command.append(target)
    # What waits in one worker while another has a free slot would make the job longer: nothing is held ready.
    command += ["--concurrency", str(concurrency), "--prefetch", "0", "--no-duties", "--attached", "--grace", "1"]
    for queue in queues:
        command += ["--queue", queue]
    return command


@contextlib.contextmanager
def bare_errors() -> Iterator[None]:
    """Raise the first error of a task group as it is, not as a group of errors."""
    try:
        yield
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None


class WorkerProcesses:
    """Worker processes, one for each command."""

    def __init__(self, commands: Sequence[Sequence[str]], environ: Mapping[str, str]) -> None:
        self._commands = commands
        self._environ = dict(environ)
        self._processes: list[asyncio.subprocess.Process] = []
        self._replaced = 0

    @property
    def pids(self) -> set[int]:
        """The numbers of the processes."""
        return {process.pid for process in self._processes}

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """All of them run during the block; none is left after it."""
        watches: list[asyncio.Task[None]] = []
        try:
            with bare_errors():
                async with asyncio.TaskGroup() as group:
                    for command in self._commands:
                        process = await self._start(command)
                        watches.append(group.create_task(self._watch(command, process)))
                    yield
                    for watch in watches:
                        watch.cancel()
        finally:
            await self._stop()

    async def _start(self, command: Sequence[str]) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            env=self._environ,
            # Ctrl-C goes to this command alone, which then stops its workers in its own order.
            start_new_session=True,
        )
        self._processes.append(process)
        return process

    async def _watch(self, command: Sequence[str], process: asyncio.subprocess.Process) -> None:
        while True:
            code = await process.wait()
            self._processes.remove(process)
            if code > 0 or self._replaced >= REPLACED_MAX:
                raise Misuse(f"a worker process ended with exit code {code}: `{' '.join(command)}`", exit_code=code)
            self._replaced += 1
            process = await self._start(command)

    async def _stop(self) -> None:
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_SECONDS):
                for process in self._processes:
                    await process.wait()
        except TimeoutError:
            for process in self._processes:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
