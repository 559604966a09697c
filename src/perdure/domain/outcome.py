"""How a handler ended: one frozen value, matched once."""

from dataclasses import dataclass

from perdure.domain.task import Body


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as data. `type` is for reading only: nobody imports it."""

    type: str
    message: str
    traceback: str = ""


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The handler returned `result`."""

    result: Body
    summary: str | None = None


@dataclass(frozen=True, slots=True)
class SucceededPartly:
    """The handler returned `result`; some of its items failed."""

    result: Body
    summary: str | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The handler failed. `permanent` ends the task whatever its budget; `retry_after_us` replaces the backoff."""

    error: Failure
    permanent: bool = False
    reason: str = "error"
    """`error`, `timeout`, `bad_payload` or `bad_result`."""
    retry_after_us: int | None = None


@dataclass(frozen=True, slots=True)
class Snoozed:
    """The handler wants to be called again after `delay_us`, at no cost."""

    delay_us: int


@dataclass(frozen=True, slots=True)
class GaveUp:
    """The handler decided that the task is not to be done."""

    reason: str


@dataclass(frozen=True, slots=True)
class HandedBack:
    """The worker is shutting down; the handler did not end."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """The handler stopped because a cancel was requested (`killed`: it had to be made to)."""

    killed: bool = False


@dataclass(frozen=True, slots=True)
class NotStarted:
    """The TTL passed before the handler began."""


Outcome = Succeeded | SucceededPartly | Failed | Snoozed | GaveUp | HandedBack | Stopped | NotStarted
