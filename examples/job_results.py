"""A job: tasks that depend on each other, with results that flow along the edges.

Run it: python examples/job_results.py
"""

import asyncio
from dataclasses import dataclass

import perdure

app = perdure.App("jobs.db")


@dataclass
class Sales:
    region: str
    cents: int


@app.task("sales.extract")
async def extract(region: str, day: str) -> Sales:
    return Sales(region, cents=100 * len(region) * len(day))


@app.task("sales.total")
def total(sales: list[Sales]) -> int:
    return sum(each.cents for each in sales)


@app.task("sales.report")
async def report(day: str, cents: int, *, ctx: perdure.Context) -> str:
    regions = sorted(ctx.parents.keys() - {"total"})  # parents are also there by name
    return f"{day}: {cents / 100:.2f} from {', '.join(regions)}"


async def main() -> None:
    with app.job("nightly") as job:
        extracts = [job.add(extract, region=region, day="2026-11-29", name=region) for region in ("north", "south")]
        sums = job.add(total, sales=[each.result for each in extracts], name="total")
        last = job.add(report, day="2026-11-29", cents=sums.result, after=extracts)
    async with app, app.worker():
        nightly = await job.submit(idempotency_key="nightly-2026-11-29")
        print(await nightly.wait(timeout=30))
        print(await nightly[last].result())
        print(await nightly.result())


if __name__ == "__main__":
    asyncio.run(main())
