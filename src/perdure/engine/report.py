"""Take what handlers tell while they run: progress, phases, parts of results, checkpoints, logs."""

import re
from collections.abc import Sequence

from perdure.domain import limits
from perdure.domain.attempt import LOG_LEVELS, PHASES, LogLine, Part, Progress, Report
from perdure.engine import encoding
from perdure.engine.names import check_key, check_prose
from perdure.engine.parts_taken import PartsTaken
from perdure.engine.quantities import check_choice, check_count
from perdure.errors import Invalid, LeaseLost, PerdureError, Refused
from perdure.store.ledger import Ledger, Reported

_SHA256 = re.compile(r"[0-9a-f]{64}")


class TakeReports:
    """Checks reports and stores them; notes which attempts sent parts."""

    def __init__(self, ledger: Ledger, parts: PartsTaken) -> None:
        self._ledger = ledger
        self._parts = parts

    async def __call__(self, reports: Sequence[Report]) -> list[Reported | PerdureError]:
        """One answer per report, in order. A refused report does not touch the others."""
        answers: list[Reported | PerdureError | None] = [_refusal(report) for report in reports]
        good = [report for report, answer in zip(reports, answers, strict=True) if answer is None]
        taken = await self._ledger.report(good) if good else []
        for report, answer in zip(good, taken, strict=True):
            if isinstance(answer, LeaseLost):
                self._parts.forget(report.hold.attempt_id)
            elif isinstance(answer, Reported) and report.part is not None:
                self._parts.note(report.hold.attempt_id, report.part)
        rest = iter(taken)
        return [next(rest) if answer is None else answer for answer in answers]


def _refusal(report: Report) -> Refused | None:
    try:
        _check(report)
    except Refused as refusal:
        return refusal
    return None


def _check(report: Report) -> None:
    if report.phase is not None:
        check_choice(report.phase, "phase", PHASES)
    if report.progress is not None:
        _check_progress(report.progress)
    if report.part is not None:
        _check_part(report.part)
    if report.checkpoint is not None:
        size = len(report.checkpoint.encode())
        if size > limits.CHECKPOINT_MAX_BYTES:
            raise encoding.too_large("checkpoint", limits.CHECKPOINT_MAX_BYTES, size)
    if report.logs:
        _check_logs(report.logs)


def _check_progress(progress: Progress) -> None:
    for name, value in zip(Progress._fields, progress, strict=True):
        if value is not None:
            check_count(value, f"progress.{name}", 0, limits.PROGRESS_MAX)


def _check_part(part: Part) -> None:
    check_count(part.sequence, "part.sequence", 1, limits.PARTS_MAX)
    check_key(part.key, "part.key")
    if not _SHA256.fullmatch(part.sha256):
        raise Invalid("part.sha256 must be 64 hexadecimal digits", field="part.sha256")
    if len(part.data.data) > limits.PART_MAX_BYTES:
        raise encoding.too_large("part", limits.PART_MAX_BYTES, len(part.data.data))


def _check_logs(lines: Sequence[LogLine]) -> None:
    before = 0
    for line in lines:
        check_count(line.sequence, "logs.sequence", 1, limits.LOG_LINES_MAX)
        if line.sequence <= before:
            raise Invalid("logs must have sequences that grow", field="logs.sequence")
        before = line.sequence
        check_choice(line.level, "logs.level", LOG_LEVELS)
        check_count(line.ago_us, "logs.ago_us", 0, limits.EXECUTION_LIMIT_MAX_US)
        check_count(line.dropped, "logs.dropped", 0, limits.PROGRESS_MAX)
        size = len(check_prose(line.message, "logs.message", limits.LOG_LINE_MAX_BYTES).encode())
        if size > limits.LOG_LINE_MAX_BYTES:
            raise encoding.too_large("logs.message", limits.LOG_LINE_MAX_BYTES, size)
