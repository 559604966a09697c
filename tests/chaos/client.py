"""A client process: `python -m chaos.client STORE LOG ORDERS` asks one thing after the other and logs each answer.

It goes on where an earlier one was killed: what is acknowledged in the log is not asked again, what is unknown is asked
again under the same key.
"""

import asyncio
import json
import sys
import threading
from pathlib import Path
from typing import Any

import perdure
from chaos import faults, unique_racing
from chaos.app import die_with_parent, make_app
from chaos.effects import Effects
from chaos.operations import OperationLog
from perdure.errors import PerdureError

LEASE = 5.0
GIVES_UP_AFTER = 10
"""Refusals in a row after which a client that was not told to be patient ends."""


async def submit(app: perdure.App, log: OperationLog, orders: dict[str, Any]) -> None:
    """Submit tasks one by one, `count` of them or until told to end."""
    done, refused = log.read("answered"), 0
    fields = {"kind": "nap", "payload": {}, "options": {}, "filling": 0, "pause": 0.0, "patient": False} | orders
    for number in range(fields["first"], fields["first"] + fields["count"]):
        key = f"task-{number}"
        if key in done:
            continue
        payload = {"number": number, **fields["payload"]}
        if fields["filling"]:
            payload["filling"] = "x" * fields["filling"]
        while not await _ask(app, log, key, fields["kind"], payload, fields["options"]):
            refused += 1
            if not fields["patient"]:
                break
            await asyncio.sleep(0.05)
        else:
            refused = 0
        if refused >= GIVES_UP_AFTER and not fields["patient"]:
            return
        await asyncio.sleep(fields["pause"])


async def _ask(app: perdure.App, log: OperationLog, key: str, kind: str, payload: Any, options: Any) -> bool:
    log.asked(key)
    try:
        handle = await app.submit(kind, payload=payload, idempotency_key=key, **options)
    except PerdureError as error:
        log.refused(key, error.code)
        return False
    log.answered(key, id=handle.id, replayed=handle.replayed)
    return True


async def operate(app: perdure.App, log: OperationLog, orders: dict[str, Any]) -> None:
    """Submit jobs, cancel one task, redrive another: each verb of a client once for each number."""
    done = log.read("answered")
    operations = await app.operations()
    for number in range(orders["first"], orders["first"] + orders["count"]):
        key = f"job-{number}"
        if key not in done:
            log.asked(key)
            with app.job(f"job {number}") as job:
                top = job.add("nap", number=number, lease=LEASE)
                job.add("nap", number=number + 1, after=[top], lease=LEASE)
            log.answered(key, id=(await job.submit(idempotency_key=key)).id)
        for verb, call in (("cancel", operations.cancel), ("redrive", operations.redrive)):
            key = f"{verb}-{number}"
            if key not in done:
                log.asked(key)
                [answer] = await call([orders[verb][number - orders["first"]]], app.principal)
                log.answered(key, answer=str(answer))


def race(app: perdure.App, log: OperationLog, orders: dict[str, Any]) -> None:
    """Many threads submit under one key at the same instant; every fifth with another body."""
    for key in orders["keys"]:
        barrier = threading.Barrier(orders["threads"])
        threads = [
            threading.Thread(target=_race_once, args=(app, log, key, f"{orders['name']}-{n}", n % 5 == 4, barrier))
            for n in range(orders["threads"])
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()


def _race_once(
    app: perdure.App, log: OperationLog, key: str, who: str, other: bool, barrier: threading.Barrier
) -> None:
    entry = f"{key}|{who}|{'other' if other else 'same'}"
    barrier.wait()
    log.asked(entry)
    try:
        handle = app.sync.submit("probe", number=2 if other else 1, idempotency_key=key)
    except PerdureError as error:
        log.refused(entry, error.code)
    else:
        log.answered(entry, id=handle.id, replayed=handle.replayed)


def _main() -> None:
    store, path, text = sys.argv[1:4]
    orders = json.loads(text)
    log = OperationLog(Path(path))
    app = make_app(store, Effects(Path(path).with_suffix(".no-effects")))
    if orders["do"] in ("race", "unique"):
        if orders["do"] == "race":
            race(app, log, orders)
        else:
            unique_racing.race(app, log, orders, store)
        app.sync.close()
        return

    async def act() -> None:
        async with app:
            await {"submit": submit, "operate": operate}[orders["do"]](app, log, orders)

    asyncio.run(act())


if __name__ == "__main__":
    die_with_parent()
    faults.do_as_told()
    _main()
