"""What a command does beside its work: it may fail, and the work is done all the same."""

import contextlib
from collections.abc import Iterator

from perdure.errors import PerdureError


@contextlib.contextmanager
def beside_the_work(lacking: str) -> Iterator[None]:
    """Where the block fails, a note on standard error says what is lacking, and why; the command goes on."""
    from perdure.cli.output import write_note

    try:
        yield
    except Exception as error:
        why = error.message if isinstance(error, PerdureError) else f"{type(error).__name__}: {error}"
        write_note(f"{lacking}: {why}")
