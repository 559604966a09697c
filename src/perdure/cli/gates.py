"""Gates as the command line tells of them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perdure.store.flow_views import GateView, SlotView
    from perdure.store.views import Page


def write_gates(page: "Page") -> None:
    """Each gate with those who have its slots and those who are next."""
    from perdure.cli.output import write_line, write_note

    for gate in page.rows:
        for line in _lines(gate):
            write_line(line)
    if not page.rows:
        write_line("no gates")
    if page.cursor is not None:
        write_note(f"more with --cursor {page.cursor}")


def _lines(gate: "GateView") -> list[str]:
    from perdure.cli.output import shown_instant

    key = f" {gate.key}" if gate.key else ""
    taken, waiting = _counted(gate.taken), _counted(gate.waiting)
    lines = [f"{gate.name}{key}: {_limit(gate)}; {taken} taken, {waiting} waiting"]
    lines += [f"  has a slot  {_holder(each)}" for each in gate.holders]
    lines += [f"  waits       {each.task}  submitted {shown_instant(each.created_us)}" for each in gate.next]
    return lines


def _limit(gate: "GateView") -> str:
    from perdure.domain.gate import GateSort, WhenFull

    if gate.sort is GateSort.ORDER:
        return "in order"
    if gate.sort is GateSort.FAIR:
        return "keys take turns"
    if gate.sort is GateSort.RATE:
        return f"{gate.slots:,} in {gate.per:g} s"
    return f"{gate.slots:,} at once" + ("" if gate.when_full is WhenFull.QUEUE else f", else {gate.when_full}")


def _holder(slot: "SlotView") -> str:
    from perdure.cli.output import shown_instant

    worker = f" on {slot.worker}" if slot.worker else ""
    free = f", free {shown_instant(slot.free_us)}" if slot.free_us is not None else ""
    task = f"{slot.task}  {slot.state}" if slot.task else "a task that was removed"
    return f"{task}{worker}, since {shown_instant(slot.since_us)}{free}"


def _counted(count: int) -> str:
    from perdure.store.flow_views import COUNTED_MAX

    return f"{count:,}" if count < COUNTED_MAX else f"{COUNTED_MAX:,} or more"
