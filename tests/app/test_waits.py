"""How long to wait: a number of seconds from 0 on, or for ever if none is said."""

import math

import pytest

import perdure

WRONG = [math.nan, -1, math.inf, -math.inf, "soon", True]


@pytest.mark.parametrize("timeout", WRONG)
async def test_what_is_no_time_to_wait_is_refused(app, timeout):
    async with app:
        handle = await app.submit("add", left=1)
        for wait in (handle.wait, handle.result):
            with pytest.raises(perdure.Invalid, match="leave it out to wait for ever") as refused:
                await wait(timeout)
            assert refused.value.fields["field"] == "timeout"


@pytest.mark.parametrize("timeout", WRONG)
async def test_a_job_is_not_waited_for_so_either(app, timeout):
    async with app:
        job = app.job("j")
        job.add(app.tasks["add"], left=1)
        handle = await job.submit()
        with pytest.raises(perdure.Invalid, match="leave it out to wait for ever"):
            await handle.wait(timeout)
