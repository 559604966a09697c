"""Logs of handlers as the engine takes them: whole, or refused with the field at fault."""

from typing import Any

import pytest

from engine.making import Bench
from perdure.domain.attempt import LogLine, Report
from perdure.domain.limits import EXECUTION_LIMIT_MAX_US, LOG_LINE_MAX_BYTES, LOG_LINES_MAX
from perdure.errors import Refused
from perdure.store.ledger import Reported

GOOD = LogLine(1, "info", "all is well", 0)


async def answer(bench: Bench, *lines: Any) -> Any:
    await bench.worker()
    await bench.submit()
    lease = await bench.lease()
    bad, good = await bench.engine.report([Report(lease.hold, logs=lines), Report(lease.hold, logs=(GOOD,))])
    assert isinstance(good, Reported)
    page = await bench.engine.views.logs("default", lease.hold.task_id, 10)
    assert [each.message for each in page.lines] == ["all is well"]
    return bad


@pytest.mark.parametrize(
    ("field", "lines"),
    [
        ("logs.sequence", [GOOD._replace(sequence=0)]),
        ("logs.sequence", [GOOD._replace(sequence=LOG_LINES_MAX + 1)]),
        ("logs.sequence", [GOOD._replace(sequence=2), GOOD._replace(sequence=2)]),
        ("logs.level", [GOOD._replace(level="loud")]),
        ("logs.ago_us", [GOOD._replace(ago_us=-1)]),
        ("logs.ago_us", [GOOD._replace(ago_us=EXECUTION_LIMIT_MAX_US + 1)]),
        ("logs.dropped", [GOOD._replace(dropped=-1)]),
        ("logs.message", [GOOD._replace(message="nul \x00")]),
        ("logs.message", [GOOD._replace(message="half \ud800")]),
        ("logs.message", [GOOD._replace(message="x" * (LOG_LINE_MAX_BYTES + 1))]),
    ],
)
async def test_a_bad_line_refuses_its_report_and_no_other(bench: Bench, field: str, lines: list[LogLine]) -> None:
    refusal = await answer(bench, *lines)
    assert isinstance(refusal, Refused)
    assert refusal.fields["field"] == field


async def test_bytes_count_and_not_characters(bench: Bench) -> None:
    refusal = await answer(bench, GOOD._replace(message="é" * (LOG_LINE_MAX_BYTES - 1)))
    assert refusal.code == "too_large"
