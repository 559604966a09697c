"""A file outside the store that runs of the built-in sleep write to, so that what really ran can be checked.

`PERDURE_EFFECT_LEDGER` names it. Each line is a JSON object; lines of many processes never mix, because each one is
written by a single append.
"""

import os

import msgspec

from perdure.ambient import SystemClock, process_id

EFFECT_LEDGER = "PERDURE_EFFECT_LEDGER"


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """One line: what happened (`start`, `end` or `stop`) to one run of which task, when and where."""

    event: str
    name: str
    """As the task's payload names it."""
    at_us: int
    """Microseconds since 1970 by this machine's clock."""
    boot_us: int
    """Microseconds since the machine started; it never steps, and the processes of one machine share it."""
    pid: int


def ledger_path() -> str | None:
    """The file that effects go to, if this process was asked to write any."""
    return os.environ.get(EFFECT_LEDGER) or None


def record(path: str, event: str, name: str) -> None:
    """Append one line. Raises `OSError`: an effect that cannot be recorded fails the task."""
    clock = SystemClock()
    effect = Effect(event=event, name=name, at_us=clock.wall_us(), boot_us=clock.boot_us(), pid=process_id())
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        os.write(descriptor, msgspec.json.encode(effect) + b"\n")
    finally:
        os.close(descriptor)
