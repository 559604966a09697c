"""`perdure task cancel` by filter: all steps, and what became of the tasks."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perdure.store.views import TaskFilter


def cancel_matching(
    where: "TaskFilter", dry_run: bool, yes: bool, text: str | None, store: str | None, as_json: bool
) -> None:
    """Cancel all tasks that the filter lets through and that have not ended."""
    from perdure.cli.confirm import confirm
    from perdure.cli.matching import act, write_matched
    from perdure.cli.output import write_json
    from perdure.cli.session import on_store
    from perdure.engine.act_on_matching import Act, Matching

    asked = Matching(Act.CANCEL, where, dry_run=dry_run, text=text)
    if not dry_run:
        confirm("cancel all tasks that match?", yes)
    step = on_store(store, lambda session: act(session, asked))
    if dry_run:
        write_matched(step.matched, "cancelled", as_json)
    elif as_json:
        write_json({"matched": step.matched, "counts": step.counts})
    else:
        told = ", ".join(f"{number} {name}" for name, number in sorted(step.counts.items())) or "nothing to cancel"
        sys.stdout.write(told + "\n")
