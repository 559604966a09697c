"""The smallest program: a task, a worker in the same process, a result.

Run it: python examples/hello.py
"""

import asyncio

import perdure

app = perdure.App("hello.db")  # without an argument: $PERDURE_STORE, else ./perdure.db


@app.task("greet")
async def greet(name: str) -> str:
    return f"Hello, {name}!"


async def main() -> None:
    async with app, app.worker():
        handle = await app.submit(greet, name="world")
        print(await handle.result(timeout=30))


if __name__ == "__main__":
    asyncio.run(main())
