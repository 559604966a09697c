"""Run by a test: a program that opens a store, forks, and goes on in both processes. Prints what each was answered."""

import asyncio
import os
import sys

from perdure.store.postgres.store import PostgresStore


async def put(store: PostgresStore, name: str) -> int:
    """Write and read, so that both kinds of connections are used. Answers how many definitions there are."""
    await store.ledger.now_us()
    await store.definitions.put("default", "queue", name, "{}", "bob")
    return len(await store.definitions.list("default", "queue"))


def main(url: str) -> None:
    with asyncio.Runner() as runner:
        store = runner.run(PostgresStore.open(url))
        assert runner.run(put(store, "before")) == 1
        ready, told = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(ready)
            with asyncio.Runner() as own:
                answered = own.run(put(store, "child"))
                own.run(store.close())
            os.write(told, f"child {answered}".encode())
            os._exit(0)
        os.close(told)
        print(os.read(ready, 100).decode())
        os.waitpid(child, 0)
        print("parent", runner.run(put(store, "parent")), runner.run(put(store, "child")))
        runner.run(store.close())


if __name__ == "__main__":
    main(sys.argv[1])
