"""Options that many commands have, so that they mean and read the same everywhere."""

from typing import Annotated

import typer

from perdure.cli.numerals import number


def finite(value: float | None) -> float | None:
    """`value` itself. Raises `typer.BadParameter` for nan and what is infinite, which bounds do not hold back."""
    if value is not None and not float("-inf") < value < float("inf"):
        raise typer.BadParameter(f"{value} is no number of seconds")
    return value


def duration(said: str | float) -> float:
    """Seconds from a number of them, or from `90s`, `5m`, `2h`, `7d`. Raises `typer.BadParameter`."""
    if not isinstance(said, str):
        return said  # A default.
    units = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
    text, unit = (said[:-1], units[said[-1]]) if said[-1:] in units else (said, 1)
    count = number(text)
    seconds = -1.0 if count is None else count * unit
    if not 0 <= seconds < float("inf"):
        raise typer.BadParameter(f"{said!r} is no duration: say seconds, or 90s, 5m, 2h, 7d")
    return seconds


StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        envvar="PERDURE_STORE",
        help=(
            "The store: a path, sqlite:///path, postgresql://user@host/database, or a gateway's http://host:port. "
            "Default: perdure.db here."
        ),
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Write one JSON document, nothing else, to standard output.")]
JsonLogOption = Annotated[bool, typer.Option("--json", help="Write log lines as JSON, one object a line.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
LimitOption = Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many rows at most.")]
CursorOption = Annotated[str | None, typer.Option("--cursor", help="Go on where the last page ended.")]
OldestOption = Annotated[bool, typer.Option("--oldest", help="The oldest first, not the newest.")]
KindOption = Annotated[list[str] | None, typer.Option("--kind", help="Only this kind; may be repeated.")]
QueueOption = Annotated[list[str] | None, typer.Option("--queue", help="Only this queue; may be repeated.")]
TimeoutOption = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        "--wait-timeout",
        parser=duration,
        metavar="DURATION",
        help="Give up waiting after so long; the work goes on.",
        show_default=False,
    ),
]
WaitTimeoutOption = Annotated[
    float | None,
    typer.Option(
        "--wait-timeout", parser=duration, metavar="DURATION", help="With --wait: how long to wait; the work goes on."
    ),
]
GraceOption = Annotated[
    float | None,
    typer.Option("--grace", parser=duration, metavar="DURATION", help="How long to finish after SIGTERM."),
]
TaskIds = Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of tasks.", show_default=False)]
TaskId = Annotated[str, typer.Argument(metavar="ID", help="The id of the task.", show_default=False)]
JobId = Annotated[str, typer.Argument(metavar="ID", help="The id of the job.", show_default=False)]
JobIds = Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of jobs.", show_default=False)]
QueueName = Annotated[str, typer.Argument(metavar="QUEUE", help="The name of the queue.", show_default=False)]


def check_waits(wait: bool, wait_timeout: float | None) -> None:
    """Raise `typer.BadParameter` for a time to wait where nobody waits."""
    if wait_timeout is not None and not wait:
        raise typer.BadParameter("it goes with --wait", param_hint="--wait-timeout")
