"""How a handler ended: one frozen value, matched once."""

from dataclasses import dataclass, field

from perdure.domain.task import Body


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as data. `type` is for reading only: nobody imports it."""

    type: str
    message: str
    traceback: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """What every outcome tells beside itself. It is no part of what the outcome is: equal outcomes may differ in it."""

    ran_us: int | None = field(default=None, kw_only=True, compare=False)
    """How long ago the handler began, when this is sent; `None`: it did not begin."""


@dataclass(frozen=True, slots=True)
class Succeeded(Ended):
    """The handler returned `result`."""

    result: Body
    summary: str | None = None


@dataclass(frozen=True, slots=True)
class SucceededPartly(Ended):
    """The handler returned `result`; some of its items failed."""

    result: Body
    summary: str | None = None


@dataclass(frozen=True, slots=True)
class Failed(Ended):
    """The handler failed. `permanent` ends the task whatever its budget; `retry_after_us` replaces the backoff."""

    error: Failure
    permanent: bool = False
    reason: str = "error"
    """`error`, `timeout`, `bad_payload` or `bad_result`."""
    retry_after_us: int | None = None


@dataclass(frozen=True, slots=True)
class Snoozed(Ended):
    """The handler wants to be called again after `delay_us`, at no cost."""

    delay_us: int


@dataclass(frozen=True, slots=True)
class GaveUp(Ended):
    """The handler decided that the task is not to be done."""

    reason: str


@dataclass(frozen=True, slots=True)
class HandedBack(Ended):
    """The worker is shutting down; the handler did not end."""


@dataclass(frozen=True, slots=True)
class Stopped(Ended):
    """The handler stopped because a cancel was requested (`killed`: it had to be made to)."""

    killed: bool = False
    told_us: int | None = field(default=None, kw_only=True, compare=False)
    """How long ago the handler was told, when this is sent."""


@dataclass(frozen=True, slots=True)
class NotStarted(Ended):
    """The TTL passed before the handler began."""


Outcome = Succeeded | SucceededPartly | Failed | Snoozed | GaveUp | HandedBack | Stopped | NotStarted
