"""The servers that speak PostgreSQL's protocol: PostgreSQL itself, and CockroachDB.

What is told to CockroachDB was never run on a CockroachDB server. It stands on its makers' documents; the suite of
every store runs it on a PostgreSQL at SERIALIZABLE, with collisions and lost commits, and each statement is held
against those documents by its parse tree. Where `PERDURE_TEST_COCKROACH_URL` names a server, the suite runs there.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from perdure.store.postgres.statements import STATEMENTS, Statement, load

UNTRIED = "on CockroachDB: this perdure was never run on a server of it, only held against what its makers document"

_STORAGE = re.compile(r"\n\) WITH \([^;]*?\);|(?<=\)) WITH \([^)]*\);")
_COLLATED = re.compile(r' COLLATE "C"')


class Dialect(NamedTuple):
    """What may be said to a server, and how."""

    name: str
    statements: Mapping[str, Statement]
    steers_plans: bool = True
    """It can be told which plans to prefer."""
    keeps_sessions: bool = True
    """What is set or prepared in a session may stay there."""
    hints: bool = True
    """It carries hints from process to process."""
    serializable: bool = False
    """It has no other isolation that the store may use."""
    tells_health: bool = True
    """It has the views of a PostgreSQL server's own state."""
    copies: bool = True
    """Its rows can be read and written by PostgreSQL's own COPY."""
    notices: tuple[str, ...] = ()
    """What everybody who uses it should know."""
    plain_schema: bool = False
    """Tables have no parameters of how they are stored, and text is compared by its bytes anyway."""

    def step(self, text: str) -> str:
        """A step of the schema as the server takes it."""
        if not self.plain_schema:
            return text
        plain = _STORAGE.sub(lambda found: "\n);" if found[0].startswith("\n") else ";", text)
        return _COLLATED.sub("", plain)


POSTGRES = Dialect("postgres", STATEMENTS)

_LEFT_OUT = re.compile("copy_(?!origin)|health_|wakeup_|submit_lone|caller_ended|writing_by_index|reading_by_index")
"""Statements that only a PostgreSQL server is asked."""

COCKROACHDB = Dialect(
    "cockroachdb",
    {
        **{name: each for name, each in STATEMENTS.items() if not _LEFT_OUT.match(name)},
        **load("cockroachdb"),
    },
    steers_plans=False,
    keeps_sessions=False,
    hints=False,
    serializable=True,
    tells_health=False,
    copies=False,
    notices=(UNTRIED,),
    plain_schema=True,
)

DIALECTS = {each.name: each for each in (POSTGRES, COCKROACHDB)}
"""By the scheme of a store's URL."""
