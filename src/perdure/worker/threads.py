"""The threads for plain functions."""

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from typing import Any

_Job = tuple["Future[Any]", Callable[[], Any]]


class HandlerThreads(Executor):
    """Starts a thread where none is idle; how many run is decided by who submits.

    The threads are daemons: one that does not come back, because its handler ignores that it shall stop, keeps neither
    a slot nor the end of the process.
    """

    def __init__(self, idle_max: int = 64) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._started = 0
        self._idle_max = idle_max
        self._closed = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        with self._lock:
            start = self._idle == 0
            if start:
                self._started += 1
            else:
                self._idle -= 1
        self._jobs.put((future, lambda: fn(*args, **kwargs)))
        if start:
            name = f"perdure-handler-{self._started}"
            threading.Thread(target=self._work, name=name, daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let idle threads go; never waits for those at work."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, 0
        for _ in range(idle):
            self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            future, call = job
            if future.set_running_or_notify_cancel():
                try:
                    result = call()
                except BaseException as error:
                    future.set_exception(error)
                else:
                    future.set_result(result)
            del job, future, call
            with self._lock:
                if self._closed or self._idle >= self._idle_max:
                    return
                self._idle += 1
