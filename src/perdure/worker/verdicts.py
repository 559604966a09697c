"""What a handler may say besides a value: each verdict can be returned or raised, with the same meaning."""

from datetime import timedelta
from typing import Any

from perdure.domain.limits import DELAY_MAX_US, REASON_TEXT_MAX_CHARS, SECOND_US, SUMMARY_MAX_BYTES
from perdure.errors import Invalid

Seconds = float | timedelta
"""A duration in seconds, or a `timedelta`."""


def to_us(duration: Seconds, field: str) -> int:
    """Microseconds of a duration. Raises `Invalid` when it is negative, not finite, or longer than ten years."""
    seconds = duration.total_seconds() if isinstance(duration, timedelta) else duration
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise Invalid(f"{field} must be a number of seconds or a timedelta", field=field)
    if not 0 <= seconds <= DELAY_MAX_US / SECOND_US:
        raise Invalid(f"{field} must be between 0 seconds and ten years", field=field)
    return round(seconds * SECOND_US)


class Verdict(Exception):
    """The root of the verdicts. It is an exception so that a verdict can be raised from deep inside a handler."""


class Snooze(Verdict):
    """Call the handler again after `delay` seconds. It costs no attempt; at most 1,000 times in a task's life."""

    def __init__(self, delay: Seconds) -> None:
        self.delay_us = to_us(delay, "delay")
        super().__init__(f"snooze for {self.delay_us / SECOND_US:g} s")


class Cancel(Verdict):
    """The task is not to be done: it ends as `cancelled`. `reason` is told to whoever looks at it."""

    def __init__(self, reason: str = "the handler decided that it is not to be done") -> None:
        self.reason = str(reason)[:REASON_TEXT_MAX_CHARS]
        super().__init__(self.reason)


class RetryAfter(Verdict):
    """This attempt failed; try again in `after` seconds instead of the backoff, if the budget allows another one."""

    def __init__(self, after: Seconds, message: str | None = None) -> None:
        self.after_us = to_us(after, "after")
        self.message = message or f"the handler asked for another attempt in {self.after_us / SECOND_US:g} s"
        super().__init__(self.message)


class Fail(Verdict):
    """This attempt failed. `permanent` (the default) ends the task whatever is left of its budget."""

    def __init__(self, message: str, permanent: bool = True) -> None:
        self.message = str(message)
        self.permanent = permanent
        super().__init__(self.message)


class Partly(Verdict):
    """`value` is the result, and some of its items failed: the task ends as `partially_succeeded`.

    `summary` says in at most 1 KiB what is missing.
    """

    def __init__(self, value: Any, summary: str | None = None) -> None:
        self.value = value
        self.summary = summary
        if summary is not None and not isinstance(summary, str):
            raise Invalid(f"summary must be text, not {summary!r}", field="summary")
        if summary is not None and len(summary.encode("utf-8", "replace")) > SUMMARY_MAX_BYTES:
            raise Invalid(f"a summary has at most {SUMMARY_MAX_BYTES} bytes", field="summary")
        super().__init__(summary or "partly")
