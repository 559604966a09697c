"""Asking before what cannot be undone."""

import sys

from perdure.errors import Invalid


def confirm(question: str, yes: bool) -> None:
    """Return if `yes`, or if the person at the terminal says so; nothing is done otherwise.

    Raises `typer.Abort` on a no, and `Invalid` where nobody can be asked.
    """
    import typer

    if yes:
        return
    if not sys.stdin.isatty():
        raise Invalid("nobody can be asked here: say --yes to go on without asking", field="yes")
    typer.confirm(question, abort=True, err=True)
