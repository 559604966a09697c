"""What people are told: why a task failed, that nobody runs it, and how many were dealt with."""

import asyncio
from pathlib import Path

import perdure as library
from cli.conftest import Perdure


def dead_letter(store: Path) -> str:
    """The id of a task that failed for good, with a traceback."""
    app = library.App(store)

    @app.task("explode", max_attempts=1)
    async def explode() -> None:
        raise ValueError("no such luck")

    async def main() -> str:
        async with app, app.worker():
            handle = await app.submit(explode)
            await handle.wait(30)
            return handle.id

    return asyncio.run(main())


def test_the_traceback_of_the_last_error_is_shown(perdure: Perdure, store: Path) -> None:
    task_id = dead_letter(store)
    for group in ("task", "dead-letter"):
        shown = perdure(group, "show", task_id).out
        assert "in explode" in shown
        assert shown.rstrip().endswith("ValueError: no such luck")


def test_one_task_is_requeued_and_a_refusal_names_it_once(perdure: Perdure, store: Path) -> None:
    task_id = dead_letter(store)
    assert perdure("dead-letter", "requeue", task_id).out == "1 task is requeued\n"
    again = perdure("dead-letter", "requeue", task_id)
    assert (again.code, again.out) == (2, "")
    assert again.err.count(task_id) == 1
    assert "can be run again" in again.err


def test_a_kind_that_no_live_worker_has_is_noted(perdure: Perdure) -> None:
    note = "no live worker has the kind k: start one with `perdure worker MODULE:APP`"
    perdure("db", "migrate")
    submitted = perdure("submit", "k")
    [told, new] = submitted.err.splitlines()
    assert told == note
    assert new.startswith("the kind k is new to this store")
    waited = perdure("task", "wait", submitted.out.strip(), "--timeout", "0.01")
    assert waited.err.count(note) == 1
    assert "after 0.01 s" in waited.err
    assert perdure("submit", "k", "--wait", "--wait-timeout", "0.01").err.count(note) == 1
    assert perdure("submit", "k", "--json").err == ""


def test_a_kind_that_is_nearly_another_ones_name_is_noted(perdure: Perdure, store: Path) -> None:
    dead_letter(store)
    assert "new to this store" not in perdure("submit", "explode").err
    [first, *rest] = perdure("submit", "explod").err.splitlines()
    assert first == "kind explod: did you mean explode?"
    assert "new to this store" in rest[-1]
    assert perdure("queue", "list").err == "kind explod: did you mean explode?\n"
