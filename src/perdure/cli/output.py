"""What commands write: JSON that stays as it is for scripts, tables for people."""

import base64
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from perdure.store.views import EventView

PIPE_COLUMNS = 100_000
"""Nothing is wrapped or cut where a program reads."""
INDENT = 4
"""So far what is told under a row stands to the right."""


def write_json(value: Any) -> None:
    """One JSON document and a line end on standard output, nothing else."""
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(plain(value)), indent=2)
    sys.stdout.write(text.decode() + "\n")
    sys.stdout.flush()


def plain(value: Any) -> Any:
    """A view as JSON values. An instant `x_us` becomes `x_at` in ISO 8601, a body its value."""
    import msgspec

    from perdure.domain.task import Body

    if isinstance(value, Body):
        return _body(value)
    if isinstance(value, msgspec.Struct):
        return dict(_plain_field(name, getattr(value, name)) for name in value.__struct_fields__)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return dict(_plain_field(name, getattr(value, name)) for name in value._fields)
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | frozenset):
        return [plain(each) for each in value]
    return value


def plain_event(event: "EventView") -> dict[str, Any]:
    """A line of a history as JSON values, the instants in its data too: they are perdure's own, not a user's."""
    data = dict(_plain_field(name, value) for name, value in event.data.items())
    return {**plain(event), "data": data}


def _plain_field(name: str, value: Any) -> tuple[str, Any]:
    if name.endswith("_us") and (value is None or isinstance(value, int)):
        stem = name.removesuffix("_us")
        return (stem if stem == "at" else f"{stem}_at"), instant(value)
    return name, plain(value)


def _body(body: Any) -> Any:
    import msgspec

    if body.encoding == "json":
        return msgspec.json.decode(body.data)
    return {"encoding": body.encoding, "base64": base64.b64encode(body.data).decode()}


def instant(us: int | None) -> str | None:
    """Microseconds since 1970 as `2026-11-29T12:00:00.000000Z`."""
    if us is None:
        return None
    seconds, rest = divmod(us, 1_000_000)
    moment = datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def shown_instant(us: int | None) -> str:
    """An instant for people: local time, to the millisecond."""
    if us is None:
        return "-"
    moment = datetime.fromtimestamp(us / 1_000_000, UTC).astimezone()
    return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{moment.microsecond // 1000:03d}"


def shown_seconds(seconds: float | None) -> str:
    """A duration for people."""
    if seconds is None:
        return "-"
    if seconds < 60:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d} min"


def counted(number: int, noun: str) -> str:
    """`1 task`, `2 tasks`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def console(*, to_stderr: bool = False) -> "Console":
    """Rich's console; as wide as it takes where no terminal is."""
    from rich.console import Console

    stream = sys.stderr if to_stderr else sys.stdout
    width = None if stream.isatty() else PIPE_COLUMNS
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False, soft_wrap=width is not None)


def write_table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], nothing: str, below: Sequence[str] = ()
) -> None:
    """Rows under their columns, or the sentence `nothing`.

    Where a row is wider than the terminal, what stands in the columns `below` comes in lines under it.
    """
    from rich.table import Table

    if not rows:
        console().print(nothing)
        return
    if below and not _fits(columns, rows):
        _write_stacked(columns, rows, below)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, column in enumerate(columns):
        table.add_column(column, no_wrap=index == 0, overflow="fold")
    for row in rows:
        table.add_row(*map(_cell, row))
    console().print(table)


def _fits(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> bool:
    return sum(_widths(columns, rows)) + 2 * (len(columns) - 1) <= console().width


def _widths(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[int]:
    """How many cells of a terminal each column takes."""
    from rich.cells import cell_len

    return [
        max(cell_len(column), *(cell_len(_cell(row[place])) for row in rows)) for place, column in enumerate(columns)
    ]


def _cell(value: object) -> str:
    return "-" if value is None else safe(value)


def _write_stacked(columns: Sequence[str], rows: Sequence[Sequence[object]], below: Sequence[str]) -> None:
    """Each row in a line, and under it a line for each of its columns `below` that has something, with its name."""
    from rich.cells import set_cell_size
    from rich.text import Text

    screen, widths = console(), _widths(columns, rows)
    beside = [place for place, column in enumerate(columns) if column not in below]

    def line(cells: Sequence[object]) -> str:
        return "  ".join(set_cell_size(_cell(cells[place]), widths[place]) for place in beside).rstrip()

    screen.print(Text(line(columns), style="bold"))
    for row in rows:
        screen.print(Text(line(row)))
        for column, value in zip(columns, row, strict=True):
            if column in below and _cell(value) != "-":
                said = Text(f"{column.lower()}: {_cell(value)}").wrap(screen, screen.width - INDENT, overflow="fold")
                screen.print(*(Text(" " * INDENT + each.plain.rstrip()) for each in said), sep="\n")


def write_facts(facts: Sequence[tuple[str, object]]) -> None:
    """Names and values, one pair a line; pairs without a value are left out."""
    width = max((len(name) for name, _ in facts), default=0)
    screen = console()
    for name, value in facts:
        if value is not None and value != "-":
            screen.print(f"{name.ljust(width)}  {safe(value)}")


def write_id(id: str) -> None:
    """An id on a line of its own, and at once: what comes after it may fail."""
    sys.stdout.write(id + "\n")
    sys.stdout.flush()


def write_line(text: str) -> None:
    """One line on standard output."""
    console().print(safe(text))


def write_note(text: str) -> None:
    """One line beside the output: on standard error."""
    console(to_stderr=True).print(safe(text))


def safe(value: object) -> str:
    """Text without characters that move the cursor or change the terminal: it may come from anybody's task."""
    return "".join(each if each.isprintable() or each in "\n\t" else "�" for each in str(value))
