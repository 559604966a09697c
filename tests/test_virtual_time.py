import asyncio
import time

import pytest

import virtual_time
from virtual_time import NothingLeftToHappen, VirtualClock, VirtualLoop


def test_a_day_of_sleep_takes_no_time() -> None:
    async def main() -> tuple[float, int]:
        loop = asyncio.get_running_loop()
        clock = VirtualClock(loop)
        begin, begin_us = loop.time(), clock.monotonic_us()
        for _ in range(3):
            await asyncio.sleep(8 * 3600)
        return loop.time() - begin, clock.monotonic_us() - begin_us

    began = time.monotonic()
    seconds, microseconds = virtual_time.run(main)
    assert seconds == pytest.approx(24 * 3600)
    assert microseconds == 24 * 3600 * 1_000_000
    assert time.monotonic() - began < 30


def test_timers_fire_in_their_order() -> None:
    async def main() -> list[int]:
        order: list[int] = []

        async def later(seconds: int) -> None:
            await asyncio.sleep(seconds)
            order.append(seconds)

        await asyncio.gather(*(later(each) for each in (50, 7, 300, 7_000, 8)))
        return order

    assert virtual_time.run(main) == [7, 8, 50, 300, 7_000]


def test_a_timeout_cuts_a_wait() -> None:
    async def main() -> float:
        began = asyncio.get_running_loop().time()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(90):
                await asyncio.Event().wait()
        return asyncio.get_running_loop().time() - began

    assert virtual_time.run(main) == pytest.approx(90, abs=1e-3)


def test_time_stands_still_while_a_thread_works() -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        sleeper = asyncio.create_task(asyncio.sleep(1_000))
        await asyncio.to_thread(lambda: None)
        spent = loop.time() - began
        sleeper.cancel()
        return spent

    assert virtual_time.run(main) == 0


def test_a_deadlock_is_an_error() -> None:
    async def main() -> None:
        await asyncio.Event().wait()

    loop = VirtualLoop()
    task = loop.create_task(main())
    with pytest.raises(NothingLeftToHappen):
        loop.run_until_complete(task)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        loop.run_until_complete(task)
    loop.close()


def test_the_wall_clock_can_be_stepped() -> None:
    async def main() -> tuple[int, int]:
        clock = VirtualClock(asyncio.get_running_loop())
        wall, steady = clock.wall_us(), clock.monotonic_us()
        clock.step_wall(-3_600_000_000)
        return clock.wall_us() - wall, clock.monotonic_us() - steady

    assert virtual_time.run(main) == (-3_600_000_000, 0)
