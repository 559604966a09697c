"""The steps of the schema: numbered files, each taken once, each in one transaction.

Whoever takes steps takes the same lock first, so that two processes which begin at once take them one after the other,
and the second finds nothing left to do. A role that may not create tables can open a store whose schema is current.
"""

import re
from collections.abc import Sequence
from importlib.resources import files

import psycopg
from psycopg import errors

from perdure.errors import SchemaTooNew, StoreUnusable
from perdure.store.postgres.commits import Commits
from perdure.store.postgres.connecting import READ_COMMITTED, Address, Connector
from perdure.store.postgres.faults import translate
from perdure.store.postgres.readers import Asking
from perdure.store.postgres.session import Limits
from perdure.store.postgres.transaction import Transaction
from perdure.store.relational.operation import Operation, Writer
from perdure.store.relational.transaction import Transaction as AnyTransaction
from perdure.store.relational.views import Readers
from perdure.store.schema import Migration, lacking, too_old

LOOKING = Limits(lock_timeout_ms=5_000, statement_timeout_ms=5_000, question_timeout_ms=5_000)
"""How long a look at the steps may take."""

_FILE = re.compile(r"(\d{4})_(\w+)\.sql")


def known_steps() -> list[Migration]:
    """Every step that this perdure knows, in order, none of them taken."""
    found = []
    for entry in (files("perdure.store.postgres") / "migrations").iterdir():
        match = _FILE.fullmatch(entry.name)
        if match:
            found.append(Migration(int(match[1]), match[2], entry.read_text(encoding="utf-8")))
    return sorted(found)


def taken_steps(tx: AnyTransaction) -> dict[int, tuple[str, int]]:
    """The name and instant of each step that a database took, by number."""
    if tx.value("schema_exists") is None:
        return {}
    return {number: (name, applied_us) for number, name, applied_us in tx.run("schema_applied")}


def missing_steps(taken: dict[int, tuple[str, int]], known: Sequence[Migration]) -> list[Migration]:
    """The steps still to take. Raises `SchemaTooNew` when the database took one that is unknown here."""
    newest = max((step.number for step in known), default=0)
    beyond = max(taken, default=0)
    if beyond > newest:
        raise SchemaTooNew(
            f"the database has schema {beyond}, this perdure knows {newest} and older: "
            "install the perdure that wrote it, or a later one",
            schema=beyond,
            known=newest,
        )
    return [step for step in known if step.number not in taken]


def status(tx: AnyTransaction) -> list[Migration]:
    """Every known step in order, with the instants of those that were taken. Raises `SchemaTooNew`."""
    known, taken = known_steps(), taken_steps(tx)
    missing_steps(taken, known)
    return [step._replace(applied_us=taken[step.number][1]) if step.number in taken else step for step in known]


def read_status(url: str) -> list[Migration]:
    """Every known step in order, for a database that need not be current. Raises `SchemaTooNew`, `Unavailable`."""
    connector = Connector(Address(url), LOOKING, READ_COMMITTED)
    session = connector.connect()
    try:
        return status(Transaction(session.connection, session.begin_reading(), dialect=session.dialect))
    except psycopg.Error as error:
        raise translate(error, connector.place) from error
    finally:
        session.close()


def bring_up_to_date(asking: Asking, commits: Commits, migrate: bool) -> None:
    """Take the steps that are missing, or raise `SchemaTooOld` where they are not to be taken or may not be."""
    missing = [step for step in asking.ask(status) if step.applied_us is None]
    if missing and not migrate:
        raise too_old(asking.place, missing, known_steps())
    for step in missing:
        try:
            commits.do(TAKE_STEP, step)
        except StoreUnusable as error:
            if isinstance(error.__cause__, errors.InsufficientPrivilege):
                raise lacking(missing, "run `perdure db migrate` as a role that may create tables") from error
            raise


def _take(tx: Transaction, steps: list[Migration]) -> list[Migration | None]:
    """Take steps within a transaction that writes; `None` for those that somebody else has taken meanwhile."""
    tx.value("schema_lock")
    tx.run("schema_create")
    taken = taken_steps(tx)
    return [None if step.number in taken else _take_one(tx, step) for step in steps]


def _take_one(tx: Transaction, step: Migration) -> Migration:
    try:
        tx.connection.cursor(binary=False).execute(tx.dialect.step(step.sql).encode())
    except (errors.DuplicateTable, errors.DuplicateObject, errors.UndefinedTable, errors.UndefinedColumn) as error:
        raise StoreUnusable(
            f"step {step.number} ({step.name}) of the schema does not fit this database ({error}): "
            "use a database that holds nothing else by these names",
            step=step.number,
        ) from error
    tx.run("schema_record", number=step.number, name=step.name, applied_us=tx.now_us)
    return step._replace(applied_us=tx.now_us)


TAKE_STEP = Operation("take_step", rank=0, apply=_take, max_items=1)


class PostgresSchema:
    """Meets `store.schema.Schema` for an open store."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def status(self) -> list[Migration]:
        """Every known step in order. Raises `SchemaTooNew`."""
        return await self._readers.read(status)

    async def migrate(self) -> list[Migration]:
        """Take the steps that are missing and return them. Raises `SchemaTooNew`."""
        done: list[Migration] = []
        for step in await self.status():
            if step.applied_us is None:
                done += [taken for taken in await self._writer.gather(TAKE_STEP, [step]) if taken is not None]
        return done
