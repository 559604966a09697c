"""What is done at the instants of a schedule: pure rules of catching up, of overlap and of jitter."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from hashlib import blake2b
from itertools import islice
from typing import Literal, NamedTuple

from perdure.domain.timing import Timing, instants

Overlap = Literal["allow", "skip", "queue_one", "cancel_running"]
OVERLAPS: tuple[Overlap, ...] = ("allow", "skip", "queue_one", "cancel_running")


class Cause(StrEnum):
    """Why a fire is there."""

    TIME = "time"
    """Its instant came."""
    TRIGGER = "trigger"
    """Somebody asked for it there and then."""
    BACKFILL = "backfill"
    """Somebody asked for the instants of a time that has passed."""


class FireOutcome(StrEnum):
    """What became of an instant."""

    FIRED = "fired"
    """It made a task or a job."""
    WAITING = "waiting"
    """It will, once what an earlier one made has ended."""
    SKIPPED = "skipped"


class SkipReason(StrEnum):
    """Why an instant made nothing."""

    MISSED = "missed"
    """It had passed longer ago than the catch-up window."""
    PAUSED = "paused"
    OVERLAP = "overlap"
    """What an earlier one made had not ended, and no second one may be made, or wait."""
    REFUSED = "refused"
    """The task or job could not be submitted; the fire tells why."""
    CHANGED = "changed"
    """It waited, and the schedule was changed, paused or disabled meanwhile."""


class Verdict(NamedTuple):
    """What the overlap policy says of one instant."""

    outcome: FireOutcome
    cancel: bool = False
    """What is open is to be cancelled first."""


def overlapping(policy: Overlap, open: bool, waiting: bool) -> Verdict:
    """What becomes of an instant while something of its schedule is `open`, and an instant is `waiting` for its end."""
    if policy == "allow" or not (open or waiting):
        return Verdict(FireOutcome.FIRED)
    if policy == "cancel_running":
        return Verdict(FireOutcome.FIRED, cancel=True)
    if policy == "queue_one" and not waiting:
        return Verdict(FireOutcome.WAITING)
    return Verdict(FireOutcome.SKIPPED)


class Stretch(NamedTuple):
    """Instants that follow each other and are skipped for one reason."""

    first_us: int
    last_us: int
    instants: int
    """How many there are."""
    reason: SkipReason


class Passed(NamedTuple):
    """What has come of a schedule since its last fire: stretches to skip and instants to fire, in order."""

    skipped: list[Stretch]
    due: list[int]
    next_us: int | None
    """The first instant that is left; it may have come too."""


def passed(timing: Timing, first_us: int, until_us: int, missed_before_us: int, paused: bool, limit: int) -> Passed:
    """What has come from `first_us` to `until_us`, at most `limit` instants.

    Those before `missed_before_us` are too late to be caught up with; while `paused`, all are skipped.
    """
    come: list[int] = []
    following = instants(timing, first_us - 1)
    next_us: int | None = None
    for instant in islice(following, limit + 1):
        if instant > until_us or len(come) == limit:
            next_us = instant
            break
        come.append(instant)
    late = [instant for instant in come if not paused and instant < missed_before_us]
    due = [] if paused else come[len(late) :]
    skipped = _stretch(late, SkipReason.MISSED) + _stretch(come if paused else (), SkipReason.PAUSED)
    return Passed(skipped, due, next_us)


def _stretch(come: Iterable[int], reason: SkipReason) -> list[Stretch]:
    skipped = list(come)
    return [Stretch(skipped[0], skipped[-1], len(skipped), reason)] if skipped else []


def jitter_us(organization: str, schedule: str, instant_us: int, jitter_max_us: int) -> int:
    """How long after its instant a fire comes: between 0 and `jitter_max_us`, the same each time it is asked."""
    if jitter_max_us == 0:
        return 0
    named = f"{organization}\n{schedule}\n{instant_us}".encode()
    return int.from_bytes(blake2b(named, digest_size=8).digest()) % (jitter_max_us + 1)


def due_instants(timing: Timing, after_us: int, count: int) -> Iterator[int]:
    """The next instants, `count` of them at most."""
    return islice(instants(timing, after_us), count)
