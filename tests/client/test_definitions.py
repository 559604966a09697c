"""Documents by a client: the same operations, the same errors."""

from pathlib import Path

import pytest

from client.serving import served
from perdure.engine.definitions import ANY, NONE
from perdure.engine.requests import Principal
from perdure.errors import Invalid, NotFound, PreconditionFailed
from perdure.settings import Settings
from perdure.wiring import open_system

ME = Principal("me")


async def test_documents_over_http_are_as_those_of_an_engine(tmp_path: Path) -> None:
    async with served(tmp_path / "store.db") as url:
        system = await open_system(Settings(store=url))
        remote = system.engine
        try:
            assert await remote.definition("queue", "a/b", ME) is None
            made = await remote.put_definition("queue", "a/b", {"depth": 3}, ME, NONE)
            assert (made.created, made.value["depth"]) == (True, 3)
            assert await remote.definition("queue", "a/b", ME) == made._replace(created=False)
            changed = await remote.put_definition("queue", "a/b", {"paused": True}, ME, made.etag)
            limits = {"concurrency": None, "rate": None, "per": None}
            document = {"paused": True, "dead_letters": True, "depth": None, **limits}
            assert (changed.created, changed.value) == (False, document)
            with pytest.raises(PreconditionFailed) as refused:
                await remote.put_definition("queue", "a/b", {}, ME, made.etag)
            assert refused.value.fields["etag"] == changed.etag
            with pytest.raises(Invalid, match="depth"):
                await remote.put_definition("queue", "a/b", {"depth": "deep"}, ME)
            with pytest.raises(NotFound):
                await remote.put_definition("organization", "other", {}, ME)
            for bad in ('a"b', "a\r\nb", "é"):
                with pytest.raises(Invalid):
                    await remote.put_definition("queue", "a/b", {}, ME, bad)
            with pytest.raises(Invalid):
                await remote.definition("job", "a", ME)  # type: ignore[arg-type]
            assert await remote.delete_definition("queue", "a/b", ME, ANY)
            assert not await remote.delete_definition("queue", "a/b", ME)
        finally:
            await system.close()
