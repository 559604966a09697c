"""`perdure db ...`: the schema of the store, and copying it into another one."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from perdure.cli.options import JsonOption, StoreOption

if TYPE_CHECKING:
    from perdure.cli.session import Session
    from perdure.store.schema import Migration

app = typer.Typer(help="The store: migrate, status, copy.", no_args_is_help=True, rich_markup_mode=None)


@app.command("migrate")
def migrate(
    dry_run: Annotated[bool, typer.Option("--print", help="Write the SQL that is missing; change nothing.")] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Make the store, or take the steps that its schema lacks. Harmless when there are none."""
    from perdure.cli.beside import beside_the_work
    from perdure.cli.output import write_json
    from perdure.cli.session import on_store

    missing = [step for step in _status(store, must_exist=False) if step.applied_us is None]
    if dry_run:
        _write_sql(missing, json)
        return

    async def take(session: "Session") -> "list[Migration]":
        schema = session.system.own_store().schema
        await schema.migrate()
        with beside_the_work("when the steps were taken was not looked up"):
            return await schema.status()
        return missing

    taken = {step.number for step in missing}
    steps = [step for step in on_store(store, take, create=True, quiet=True) if step.number in taken]
    if json:
        write_json({"taken": [_fields(step) for step in steps]})
    elif not steps:
        sys.stdout.write("nothing to do: the schema is current\n")
    else:
        sys.stdout.writelines(f"took step {step.number} {step.name}\n" for step in steps)


@app.command("status")
def status(store: StoreOption = None, json: JsonOption = False) -> None:
    """Show the steps of the schema and which the store has. Exit code 1 if some are missing."""
    from perdure.cli.output import shown_instant, write_json, write_table

    steps = _status(store, must_exist=True)
    missing = [step for step in steps if step.applied_us is None]
    if json:
        write_json({"current": not missing, "steps": [_fields(step) for step in steps]})
    else:
        rows = [(step.number, step.name, shown_instant(step.applied_us)) for step in steps]
        write_table(("STEP", "NAME", "TAKEN"), rows, "no steps")
    if missing:
        raise typer.Exit(1)


@app.command("copy")
def copy(
    source: Annotated[str, typer.Argument(metavar="SRC", help="The store to copy. Nobody may use it meanwhile.")],
    target: Annotated[str, typer.Argument(metavar="DST", help="The store to copy to: empty, or not there yet.")],
    json: JsonOption = False,
) -> None:
    """Copy a store into another one, of the same or of another sort, and compare them.

    Pause the queues of SRC and let its workers finish before. A copy that was interrupted goes on where it stopped.
    """
    from perdure.cli.database_copy import copy_between
    from perdure.cli.output import write_json, write_table

    copied = copy_between(source, target, tell=not json)
    if json:
        write_json({"tables": [{"table": each.table, "rows": each.rows, "sha256": each.sha256} for each in copied]})
    else:
        rows = [(each.table, f"{each.rows:,}", each.sha256) for each in copied]
        write_table(("TABLE", "ROWS", "SHA-256 IN BOTH"), rows, "no tables")


def _status(store: str | None, *, must_exist: bool) -> "list[Migration]":
    import asyncio

    from perdure.cli.session import check_exists, settings_for
    from perdure.wiring import schema_status

    settings = settings_for(store)
    if must_exist:
        check_exists(settings.store)
    return asyncio.run(schema_status(settings))


def _fields(step: "Migration") -> dict[str, object]:
    from perdure.cli.output import instant

    return {"number": step.number, "name": step.name, "taken_at": instant(step.applied_us)}


def _write_sql(missing: "list[Migration]", as_json: bool) -> None:
    from perdure.cli.output import write_json

    if as_json:
        write_json({"missing": [_fields(step) | {"sql": step.sql} for step in missing]})
    else:
        sys.stdout.writelines(f"-- step {step.number} {step.name}\n{step.sql.rstrip()}\n" for step in missing)
