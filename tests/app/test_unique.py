"""Unique tasks from Python: said at the kind or at a submit, told by the handle."""

import apsw
import pytest

import perdure


async def test_a_handle_tells_what_became_of_a_unique_task(app):
    @app.task("mail", unique=perdure.Unique(by="to", on_conflict="return_existing"))
    async def mail(to: str) -> str:
        return to

    async with app:
        first = await app.submit(mail, to="a")
        again = await app.submit(mail, to="a")
        other = await app.submit(mail, to="b")
        assert [each.outcome for each in (first, again, other)] == ["created", "existing", "created"]
        assert (again.id, again.replayed) == (first.id, False)


async def test_a_submit_may_say_it_over_its_kind(app):
    @app.task("mail", unique=perdure.Unique(by="to"))
    async def mail(to: str) -> str:
        return to

    async with app:
        first = await app.submit(mail, to="a")
        with pytest.raises(perdure.UniqueConflict) as refused:
            await app.submit(mail, to="a")
        assert (refused.value.task_id, refused.value.state) == (first.id, "queued")
        replaced = await app.submit(mail, to="a", unique=perdure.Unique(by="to", on_conflict="replace"))
        assert replaced.outcome is perdure.SubmitOutcome.REPLACED
        assert (await first.status()).reason is perdure.Reason.SUPERSEDED


async def test_many_are_told_one_by_one(app):
    @app.task("mail", unique=perdure.Unique(by="to", on_conflict="throttle", within=60))
    async def mail(to: str) -> str:
        return to

    async with app:
        handles = await app.submit_many([mail.call(to=to) for to in "aabac"])
        assert [each.outcome for each in handles] == ["created", "existing", "created", "existing", "created"]
        assert len({each.id for each in handles}) == 3


async def test_a_debounced_task_runs_with_the_last_arguments(app):
    @app.task("index", unique=perdure.Unique(by="document", on_conflict="debounce", wait=0.05))
    async def index(document: int, version: int) -> int:
        return version

    async with app:
        handles = [await app.submit(index, document=1, version=version) for version in range(5)]
        async with app.worker():
            assert {each.id for each in handles} == {handles[0].id} or handles[-1].outcome == "created"
            assert await handles[-1].result(10) == 4


async def test_a_field_that_the_handler_does_not_take_is_refused_before_anything_is_stored(app, tmp_path):
    @app.task("mail")
    async def mail(to: str) -> str:
        return to

    by_too = perdure.Unique(by="too", on_conflict="return_existing")
    async with app:
        with pytest.raises(perdure.Invalid, match="by 'too', which kind 'mail' does not take: it takes to"):
            await app.submit(mail, to="a", unique=by_too)
        with apsw.Connection(str(tmp_path / "app.db")) as connection, pytest.raises(perdure.Invalid, match="by 'too'"):
            await app.submit(mail, to="a", unique=by_too, connection=connection)


def test_a_kind_that_says_nonsense_is_misuse(app):
    with pytest.raises(perdure.Misuse, match="unique"):

        @app.task("mail", unique="yes")
        async def mail(to: str) -> None: ...
