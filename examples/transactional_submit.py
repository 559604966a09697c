"""A task that exists exactly if the transaction that asked for it commits: no lost mails, no mails for nothing.

Orders and tasks live in one SQLite file. `apsw` is the SQLite that perdure brings along; use it for your tables too.

Run it: python examples/transactional_submit.py
"""

import asyncio

import apsw

import perdure

PATH = "shop.db"
app = perdure.App(PATH)


@app.task("mail.confirmation")
async def confirm(order: int) -> str:
    return f"confirmed order {order}"


async def place_order(connection: apsw.Connection, item: str) -> perdure.Handle[str]:
    with connection:  # a transaction: committed at the end, rolled back by an error
        connection.execute("INSERT INTO orders (item) VALUES (?)", (item,))
        order = connection.last_insert_rowid()
        handle = await app.submit(confirm, order=order, connection=connection)
        if item == "unicorn":
            raise ValueError("we have no unicorns")
    return handle


async def main() -> None:
    async with app:
        connection = apsw.Connection(PATH)
        connection.set_busy_timeout(5_000)
        connection.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, item TEXT)")
        handle = await place_order(connection, "lamp")
        try:
            await place_order(connection, "unicorn")
        except ValueError as error:
            print("rolled back:", error)
        connection.close()

        async with app.worker():
            print(await handle.result(timeout=30))
        system = await app.system()
        print("tasks in the store:", (await system.engine.views.overview("default")).tasks)


if __name__ == "__main__":
    asyncio.run(main())
