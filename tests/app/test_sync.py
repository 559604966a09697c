"""The app without `await`: from threads, after forks, with the same errors."""

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import perdure


@pytest.fixture
def client(app):
    with app.sync as client:
        yield client


@pytest.fixture
def working(app, client):
    """A worker on an event loop in another thread."""
    started, loop = threading.Event(), asyncio.new_event_loop()
    stop = asyncio.Event()

    async def work() -> None:
        async with app, app.worker():
            started.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(work(),))
    thread.start()
    started.wait(10)
    yield
    loop.call_soon_threadsafe(stop.set)
    thread.join(30)
    loop.close()


def test_a_result_comes_back_to_plain_code(app, client, working):
    assert client.submit("add", 1, right=2).result(timeout=10) == 3
    with pytest.raises(perdure.TaskFailed, match="ValueError: no"):
        client.submit(app.tasks["fail"], text="no").result(timeout=10)


def test_errors_are_the_same(app, client):
    with pytest.raises(perdure.Invalid):
        client.submit("add", left="x")
    handle = client.submit("add", left=1)
    with pytest.raises(perdure.WaitTimedOut):
        handle.result(timeout=0.01)
    assert handle.status().state == "queued"
    assert handle.cancel("no").answer == "cancelled"
    assert handle.wait() == "cancelled"
    assert [event.type for event in handle.events()][-1] == "ended"
    assert handle.logs() == []
    with pytest.raises(perdure.Malformed):
        client.handle("x")


def test_many_and_jobs_and_waiting(app, client, working):
    add = app.tasks["add"]
    handles = client.submit_many([add.call(number) for number in range(4)])
    client.wait_all(handles, timeout=10)
    assert [handle.result() for handle in client.as_completed(handles)] == [1, 2, 3, 4]
    assert client.wait_any(handles) == handles
    with client.job("sums") as job:
        first = job.add(add, left=1)
        job.add("sum", numbers=[first.result])
    run = job.submit(idempotency_key="k")
    assert run.wait(10) == "succeeded"
    assert run.result() == {"add-1": 2, "sum-1": 2}
    assert run[first].result() == 2
    assert client.job_handle(run.id).status().state == "succeeded"
    assert [task.name for task in run.tasks()] == ["add-1", "sum-1"]
    assert not run.cancel()


def test_one_refusal_among_many(app, client):
    add = app.tasks["add"]
    good, bad = client.submit_many([add.call(1), add.call(1).with_options(priority=99)], return_errors=True)
    assert isinstance(good, perdure.SyncHandle)
    assert isinstance(bad, perdure.Invalid)


def test_it_is_used_from_many_threads_at_once(client):
    with ThreadPoolExecutor(8) as pool:
        handles = list(pool.map(lambda number: client.submit("add", left=number), range(80)))
    assert len({handle.id for handle in handles}) == 80


async def test_inside_a_running_loop_it_says_what_to_do(app):
    for use in (lambda: app.sync.submit("add", 1), app.sync.close, app.sync.run):
        with pytest.raises(perdure.Misuse, match="with await"):
            use()


async def test_it_may_be_used_from_a_thread_beside_a_loop(app):
    async with app:
        handle = await asyncio.to_thread(app.sync.submit, "add", 1)
        assert (await app.handle(handle.id).status()).state == "queued"
    await asyncio.to_thread(app.sync.close)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_starts_its_own(app, client):
    parents = client.submit("add", left=1)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            handle = client.submit("add", left=2)
            client.close()
            os.write(write, f"{handle.id} {client.handle(parents.id).status().state}".encode())
        except BaseException as error:
            os.write(write, repr(error).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    assert os.waitpid(child, 0) == (child, 0)
    child_id, state = said.split(" ", 1)
    assert state == "queued", said
    assert client.handle(child_id).status().state == "queued"
    assert client.submit("add", left=3).status().state == "queued"


def test_it_starts_again_after_it_was_closed(client):
    client.submit("add", left=1)
    client.close()
    client.close()
    assert client.submit("add", left=1).id
