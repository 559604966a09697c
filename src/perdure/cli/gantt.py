"""A job's run as bars over time."""

from typing import TYPE_CHECKING

from perdure.cli.output import console, safe, shown_seconds, write_line, write_note

if TYPE_CHECKING:
    from perdure.engine.job_timeline import JobTimeline, TimelineTask

NAME_MAX_CHARS = 32
WAITED, RAN, CRITICAL = "·", "▒", "█"
"""What a task's time is drawn with: in its lane, held by a worker, and held on the critical path."""


def write_gantt(timeline: "JobTimeline", width: int, limit: int) -> None:
    """One line for each task that has begun, in the order in which they did."""
    from rich.table import Table
    from rich.text import Text

    begun = [each for each in timeline.tasks if each.leased_us is not None]
    if not begun:
        write_line("no task has begun")
        return
    end_us = max(each.finished_us or each.leased_us or 0 for each in begun)
    scale = _Scale(timeline.created_us, end_us, width)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("TASK", no_wrap=True)
    table.add_column(_axis(timeline, width), no_wrap=True)
    table.add_column("RAN", justify="right", no_wrap=True)
    for each in begun[:limit]:
        style = "bold" if each.critical else ""
        ran = shown_seconds(each.ran) if each.finished_us is not None else str(each.state)
        table.add_row(Text(_cut(safe(each.name)), style=style), Text(scale.bar(each), style=style), ran)
    console().print(table)
    write_line(
        f"{CRITICAL} critical path {shown_seconds(timeline.critical_path)}   {RAN} ran   {WAITED} waited in its lane"
    )
    left = len(timeline.tasks) - min(len(begun), limit)
    if left:
        write_note(f"{left} more: beyond --limit, or not begun")


class _Scale:
    """Instants as columns: the whole time takes `width` of them."""

    def __init__(self, start_us: int, end_us: int, width: int) -> None:
        self._start_us = start_us
        self._span_us = max(1, end_us - start_us)
        self._width = width

    def column(self, us: int) -> int:
        return min(self._width, max(0, (us - self._start_us) * self._width // self._span_us))

    def bar(self, task: "TimelineTask") -> str:
        """A task's line: whatever ran shows, however short."""
        leased_us = task.leased_us or 0
        begin = min(self.column(leased_us), self._width - 1)
        end = max(begin + 1, self._width if task.finished_us is None else self.column(task.finished_us))
        waiting = min(begin, self.column(task.queued_us)) if task.queued_us is not None else begin
        ran = CRITICAL if task.critical else RAN
        return " " * waiting + WAITED * (begin - waiting) + ran * (end - begin) + " " * (self._width - end)


def _axis(timeline: "JobTimeline", width: int) -> str:
    end = shown_seconds(timeline.makespan)
    return "0" + end.rjust(width - 1)


def _cut(name: str) -> str:
    return name if len(name) <= NAME_MAX_CHARS else name[: NAME_MAX_CHARS - 1] + "…"
