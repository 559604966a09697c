"""`perdure db copy`: both stores are opened, brought up to date where that is theirs to be, and handed to the copy."""

import asyncio
import sys
from contextlib import closing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perdure.engine.copy_store import Copied
    from perdure.settings import Settings


def copy_between(source: str, target: str, *, tell: bool) -> "list[Copied]":
    """Copy `source` into `target`, which is made if it is not there. `tell`: say on standard error what is done."""
    from perdure.cli.session import check_exists, settings_for
    from perdure.engine.copy_store import copy_store
    from perdure.errors import Misuse
    from perdure.wiring import open_rows, same_store, shown

    here, there = settings_for(source), settings_for(target)
    check_exists(here.store)
    if same_store(here.store, there.store):
        raise Misuse(f"{shown(here.store)} is both SRC and DST: name another store to copy to")
    _check_current(here)
    asyncio.run(_make(there))
    with closing(open_rows(here.store)) as rows, closing(open_rows(there.store)) as copy:
        return copy_store(rows, copy, _say if tell else lambda text: None)


def _check_current(settings: "Settings") -> None:
    from perdure.errors import SchemaTooOld
    from perdure.wiring import schema_status, shown

    if any(step.applied_us is None for step in asyncio.run(schema_status(settings))):
        raise SchemaTooOld(
            f"the schema of {shown(settings.store)} is not current: run `perdure db migrate` on it first"
        )


async def _make(settings: "Settings") -> None:
    """Opening a store makes it and brings its schema up to date, also where it is refused as an unfinished copy."""
    from perdure.errors import UnfinishedCopy
    from perdure.wiring import open_system

    try:
        system = await open_system(settings)
    except UnfinishedCopy:
        return
    await system.close()


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
