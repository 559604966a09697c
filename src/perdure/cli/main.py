"""The command `perdure`: one command group a file, errors as one line, exit codes that scripts can rely on.

0 succeeded, 1 failed work, 2 usage or bad input, 3 the store cannot be reached or opened.
"""

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from perdure.cli import (
    database,
    dead_letter,
    dev,
    doctor,
    job,
    kind,
    organization,
    pauses,
    queue,
    schedule,
    serve,
    submit,
    task,
    worker,
    worker_orders,
)
from perdure.cli.numerals import take_plain_numbers
from perdure.cli.problems import FAILED, INTERRUPTED, USAGE, tell, tell_usage, warn
from perdure.errors import PerdureError

UsageProblem: Any = typer.BadParameter.__mro__[2]
"""The root of what the parser of the command line raises, wherever this version of Typer keeps it."""

app = typer.Typer(
    name="perdure",
    help="perdure: durable tasks for Python. Exit codes: 0 succeeded, 1 failed work, 2 usage, 3 no store.",
    no_args_is_help=True,
    # Plain help: drawing it with Rich takes longer than all the rest of the program's start.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("dev")(dev.dev)
app.command("serve")(serve.serve)
app.command("submit")(submit.submit)
app.command("doctor")(doctor.doctor)
app.command("pauses")(pauses.pauses)
worker_orders.add_to(worker.app)
app.add_typer(worker.app, name="worker")
app.add_typer(task.app, name="task")
app.add_typer(job.app, name="job")
app.add_typer(queue.app, name="queue")
app.add_typer(organization.app, name="organization")
app.add_typer(kind.app, name="kind")
app.add_typer(schedule.app, name="schedule")
app.add_typer(dead_letter.app, name="dead-letter")
app.add_typer(database.app, name="db")


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"perdure {version('perdure')}")
        raise typer.Exit


@app.callback()
def _program(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and stop.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    take_plain_numbers(context.command)


def main() -> None:
    """Run the command line of this process and leave with its exit code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code. An error is one line on standard error, or with `--json` one
    JSON object there; `perdure --debug ...` shows its traceback.
    """
    _note_unknown_variables(arguments)
    as_json = "--json" in arguments
    debug = "--debug" in arguments[:1]
    try:
        code = app(list(arguments), prog_name="perdure", standalone_mode=False)
        sys.stdout.flush()
    except UsageProblem as problem:
        return tell_usage(problem, as_json, arguments)
    except typer.Abort:
        sys.stderr.write("nothing was done\n")
        return USAGE
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has seen enough. Python would complain once more at the end of the process.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except PerdureError as error:
        if debug:
            raise
        return tell(error, as_json)
    except Exception as error:
        if debug:
            raise
        return tell(error, as_json)
    if code == INTERRUPTED:
        sys.stderr.write("interrupted\n")
    return code if isinstance(code, int) else 0


def _note_unknown_variables(arguments: Sequence[str]) -> None:
    """Tell of `PERDURE_*` that mean nothing; a process that a command started leaves that to the command."""
    named = {name for name in os.environ if name.startswith("PERDURE_")} - {"PERDURE_STORE"}
    if not named or "--attached" in arguments:
        return
    from perdure.settings import unknown_variables

    for sentence in unknown_variables(os.environ):
        warn(sentence, as_json="--json" in arguments)
