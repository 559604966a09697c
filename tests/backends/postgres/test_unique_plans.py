"""How the statements of unique tasks find their rows: by the key or the number, whatever the statistics say."""

import msgspec
import pytest

from backends.postgres.crew import Watched, Writer, nodes
from perdure.domain.unique import Unique
from perdure.store.postgres import submission
from perdure.store.relational.retaining import remove_tasks
from perdure.store.relational.unique import take_again

KEYS = """
    INSERT INTO perdure_unique_keys (organization, key, task_id, taken_us, until_us)
    SELECT 'default', 'work ' || n, n, 0, n FROM generate_series(1, 100000) AS n
"""
SEEN = ("unique_take", "unique_standing", "unique_hold", "unique_of", "unique_leave", "remove_unique_keys")


def options(key: str) -> str:
    return msgspec.json.encode({"unique": Unique(on_conflict="throttle", within=60).key(key)}).decode()


@pytest.mark.parametrize("analyzed", [False, True], ids=["unanalyzed", "analyzed"])
@pytest.mark.parametrize("many", [False, True], ids=["few", "many"])
def test_keys_and_their_holders_are_found_by_their_keys(postgres_database: str, many: bool, analyzed: bool) -> None:
    writer = Writer(postgres_database)
    try:
        connection = writer.session.connection
        if many:
            connection.execute(KEYS)
        writer.submit(writer.tasks(1000 if many else 2))
        if analyzed:
            connection.execute("VACUUM ANALYZE")
        tx = Watched(connection, writer.session.begin(durable=False))
        submission.submit(tx, writer.tasks(3, options=options("work 1")), writer.lanes)
        take_again(tx, [1, 2])
        remove_tasks(tx, [1, 2])
        plans = {name: tx.plan(name) for name in SEEN if name in tx.given}
        writer.session.roll_back()
    finally:
        writer.close()
    # Where the key is free, nobody has to give it up.
    assert plans.keys() == {*SEEN} - ({"unique_hold"} if not many else set())
    for name, plan in plans.items():
        for node in nodes(plan):
            relation = node.get("Relation Name", "")
            if relation and node["Node Type"] != "ModifyTable":
                assert node["Node Type"] in ("Index Scan", "Index Only Scan", "Bitmap Heap Scan"), (name, node)
