"""A transaction runs statements by name and keeps what they stage."""

from perdure.store.postgres.statements import parse
from perdure.store.postgres.transaction import Transaction


def test_a_new_store_declares_losses_at_once(tx: Transaction) -> None:
    rows = tx.connection.execute("SELECT value FROM perdure_meta WHERE key = 'losses_suspended_until_us'").fetchall()
    assert rows == [("0",)]


def test_headers_say_what_a_statement_has_to_do_with_staged_rows() -> None:
    stages = parse("due_stage", "-- Stage what is due.\n-- stages: joining\nSELECT %(batch)s::jsonb, %(ending)s::jsonb")
    assert (stages.stages, stages.clears, stages.reads) == ("joining", None, ("ending",))
    clears = parse("joining_clear", "-- Forget what is staged.\n-- clears: joining\n")
    assert (clears.stages, clears.clears, clears.reads) == (None, "joining", ())
