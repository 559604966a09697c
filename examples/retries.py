"""What happens to a task that fails: it is tried again, it snoozes, it gives up, and what is left of it.

Run it: python examples/retries.py
"""

import asyncio

import perdure

app = perdure.App("retries.db")


class CardDeclined(Exception):
    """Trying again will not help."""


@app.task("charge", retry=perdure.Retry(4, backoff="exponential", base=0.1, cap=1), give_up_on=[CardDeclined])
async def charge(card: str, cents: int, *, ctx: perdure.Context) -> str:
    if card == "stolen":
        raise CardDeclined("the bank says no")
    if ctx.attempt < 3:
        raise ConnectionError("the bank does not answer")  # worth another attempt, after a while
    return f"charged {cents} cents at attempt {ctx.attempt}"


@app.task("ship")
async def ship(parcel: int, *, ctx: perdure.Context) -> str | perdure.Snooze | perdure.Cancel:
    if parcel < 0:
        return perdure.Cancel("there is no such parcel")  # not to be done at all
    if ctx.fence % 3:
        return perdure.Snooze(0.05)  # later again; it costs no attempt
    return "on its way"


async def main() -> None:
    async with app, app.worker():
        good = await app.submit(charge, card="4242", cents=1999)
        print(await good.result(timeout=30))
        for attempt in await good.attempts():
            print(f"  attempt {attempt.attempt}: {attempt.state}", attempt.error.message if attempt.error else "")

        bad = await app.submit(charge, card="stolen", cents=5)
        try:
            await bad.result(timeout=30)
        except perdure.TaskFailed as error:
            print(f"{error.state} because {error.reason}: {error.error.message}")

        print(await (await app.submit(ship, parcel=7)).result(timeout=30))
        unwanted = await app.submit(ship, parcel=-1)
        print(await unwanted.wait(timeout=30))


if __name__ == "__main__":
    asyncio.run(main())
