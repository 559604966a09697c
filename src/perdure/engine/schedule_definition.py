"""What a schedule says: checked, kept as a document, and worked out to a timing."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from perdure.documents import convert
from perdure.domain import limits
from perdure.domain.cron import parse_cron
from perdure.domain.schedule import OVERLAPS, Overlap, jitter_us
from perdure.domain.timing import FOLDS, GAPS, Every, Fold, Gap, Once, Timing, WallClock, fold_of, gap_of
from perdure.engine import encoding
from perdure.engine.names import check_title
from perdure.engine.quantities import check_choice, instant_us, seconds_us
from perdure.engine.requests import JobRequest, TaskRequest
from perdure.engine.zones import Zones
from perdure.errors import Invalid

UTC_NAME = "UTC"
_PLAIN = ("payload", "metadata")
"""Fields whose values are the user's: nothing in them is left out."""


class ScheduleDefinition(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A schedule as its owner declares it: when (`cron`, `every` or `at`), and what (`task` or `job`).

    `cron` has five fields, or six with seconds in front, or is an alias such as `@daily`; it is read on the clock of
    `time_zone` (default UTC). `every` is seconds, counted from `start` or else from when the schedule was made. Nothing
    comes before `start`, or from `end` on.

    `gap` and `fold` say what holds when that clock is set: a time that it skips is made up for at the end of the gap
    (`after`) or not (`skip`), one that it shows twice counts the `first` time or `both`. By default a cron expression
    that names its hours has `after` and `first`, any other `skip` and `both`.

    `catch_up`: instants that were missed, because nothing ran, are made up for if they are no older than so many
    seconds. `overlap`: what holds while what an earlier instant made has not ended: `allow` the next, `skip` it,
    `queue_one` until that has ended, or `cancel_running`. `jitter`: up to so many seconds are waited after each
    instant, always the same for the same instant. `set`: the declared set that the schedule belongs to.
    """

    cron: str | None = None
    every: float | None = None
    at: datetime | None = None
    time_zone: str | None = None
    gap: Gap | None = None
    fold: Fold | None = None
    start: datetime | None = None
    end: datetime | None = None
    task: TaskRequest | None = None
    job: JobRequest | None = None
    catch_up: float = limits.seconds(limits.CATCH_UP_DEFAULT_US)
    overlap: Overlap = "skip"
    jitter: float = 0.0
    enabled: bool = True
    set: str | None = None


class Understood(NamedTuple):
    """A definition worked out for one schedule."""

    organization: str
    name: str
    definition: ScheduleDefinition
    timing: Timing
    catch_up_us: int
    jitter_max_us: int

    def due_us(self, instant_us: int) -> int:
        """When an instant is to make something: after its jitter."""
        return instant_us + jitter_us(self.organization, self.name, instant_us, self.jitter_max_us)

    def look_us(self, next_us: int | None) -> int | None:
        """When the schedule is to be looked at for its next instant."""
        return None if next_us is None else self.due_us(next_us)

    def missed_before_us(self, now_us: int) -> int:
        """Instants before this are too late to be caught up with."""
        return now_us - max(self.catch_up_us, limits.LATE_US) - self.jitter_max_us


def definition_of(value: ScheduleDefinition | Mapping[str, Any]) -> ScheduleDefinition:
    """A definition, from a mapping too. Raises `Invalid` with the field."""
    if isinstance(value, ScheduleDefinition):
        return value
    return convert(value, ScheduleDefinition, "schedule")


def document_of(definition: ScheduleDefinition) -> str:
    """The document that is kept: what was said, nothing else, in one order."""
    said = _said(definition)
    for what in ("task", "job"):
        if what in said:
            said[what] = _said(said[what])
    if "job" in said:
        said["job"]["tasks"] = [_said(task) for task in said["job"]["tasks"]]
    data = encoding.encode_sorted(said)
    if len(data) > limits.SCHEDULE_DOCUMENT_MAX_BYTES:
        raise encoding.too_large("schedule", limits.SCHEDULE_DOCUMENT_MAX_BYTES, len(data))
    return data.decode()


def _said(struct: msgspec.Struct) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for field in msgspec.structs.fields(struct):
        value = getattr(struct, field.name)
        if field.name in _PLAIN and value is not None:
            # Checked here, because what is kept must be JSON whatever it was made of.
            said[field.name] = encoding.decode(encoding.encode(value, field.name, limits.PAYLOAD_MAX_BYTES))
        elif value is not None and value != field.default:
            said[field.name] = value
    return said


def read_definition(document: str) -> ScheduleDefinition:
    """A definition from its document. Raises `Invalid` where a later perdure has written it."""
    try:
        return msgspec.json.decode(document, type=ScheduleDefinition)
    except msgspec.MsgspecError as error:
        raise Invalid(f"this document of a schedule is not understood: {error}", field="schedule") from None


def understand(
    organization: str, name: str, definition: ScheduleDefinition, anchor_us: int, zones: Zones, now_us: int
) -> Understood:
    """What a definition comes to. Raises `Invalid` with the field."""
    catch_up_us = seconds_us(definition.catch_up, "catch_up", 0, limits.CATCH_UP_MAX_US) or 0
    jitter_max_us = seconds_us(definition.jitter, "jitter", 0, limits.JITTER_MAX_US) or 0
    check_choice(definition.overlap, "overlap", OVERLAPS)
    if definition.set is not None:
        check_title(definition.set, "set")
    _check_work(definition)
    start_us = instant_us(definition.start, "start", now_us)
    end_us = instant_us(definition.end, "end", now_us)
    if start_us is not None and end_us is not None and end_us <= start_us:
        raise Invalid("end must be after start", field="end")
    rule = _rule(definition, anchor_us if start_us is None else start_us, zones, now_us)
    timing = Timing(rule, start_us, end_us)
    return Understood(organization, name, definition, timing, catch_up_us, jitter_max_us)


def _check_work(definition: ScheduleDefinition) -> None:
    if (definition.task is None) == (definition.job is None):
        raise Invalid("a schedule makes a task or a job: give one of them", field="task")
    what = "task" if definition.job is None else "job"
    work = definition.task or definition.job
    for field in ("idempotency_key", "run_at", "trace"):
        if getattr(work, field, None) is not None:
            raise Invalid(f"the {what} of a schedule has no {field}: each instant makes one of its own", field=what)


def _rule(definition: ScheduleDefinition, anchor_us: int, zones: Zones, now_us: int) -> WallClock | Every | Once:
    given = [name for name in ("cron", "every", "at") if getattr(definition, name) is not None]
    if len(given) != 1:
        raise Invalid("say when by one of cron, every and at", field=given[1] if given else "cron")
    if definition.cron is not None:
        cron = parse_cron(definition.cron)
        gap = None if definition.gap is None else check_choice(definition.gap, "gap", GAPS)
        fold = None if definition.fold is None else check_choice(definition.fold, "fold", FOLDS)
        zone = zones(UTC_NAME if definition.time_zone is None else definition.time_zone)
        return WallClock(cron, zone, gap_of(cron, gap), fold_of(cron, fold))
    for name in ("time_zone", "gap", "fold"):
        if getattr(definition, name) is not None:
            raise Invalid(f"{name} goes with cron, not with {given[0]}", field=name)
    if definition.every is not None:
        every_us = seconds_us(definition.every, "every", limits.EVERY_MIN_US, limits.EVERY_MAX_US)
        return Every(every_us or 0, anchor_us)
    return Once(instant_us(definition.at, "at", now_us) or 0)


def same_timing(one: ScheduleDefinition, other: ScheduleDefinition) -> bool:
    """Whether two definitions come at the same instants."""
    return all(getattr(one, name) == getattr(other, name) for name in _TIMES)


_TIMES = ("cron", "every", "at", "time_zone", "gap", "fold", "start", "end", "enabled")
