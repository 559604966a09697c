"""Which stores can be named, and what becomes of the settings."""

import pytest

from perdure import App
from perdure.errors import Misuse, StoreUnreachable
from perdure.settings import Settings
from perdure.wiring import engine_settings, sqlite_path, worker_settings


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("perdure.db", "perdure.db"),
        ("/var/lib/perdure.db", "/var/lib/perdure.db"),
        ("sqlite:///perdure.db", "perdure.db"),
        ("sqlite:////var/lib/perdure.db", "/var/lib/perdure.db"),
        (":memory:", ":memory:"),
    ],
)
def test_a_store_is_a_path_or_a_url_of_one(url, path):
    assert sqlite_path(url) == path


@pytest.mark.parametrize("url", ["cockroachdb://host/db", "cockroachdb+psycopg://x", "redis://x"])
def test_what_comes_later_is_refused_and_what_works_is_named(url):
    with pytest.raises(Misuse, match=r"not available in this version: use a SQLite file"):
        App(url)


@pytest.mark.parametrize("url", ["mysql://x", "sqlite://x.db", "sqlite:///"])
def test_what_names_no_store_is_refused(url):
    with pytest.raises(Misuse, match="sqlite:///"):
        App(url)


def test_the_store_is_that_of_the_environment_unless_said(monkeypatch):
    monkeypatch.setenv("PERDURE_STORE", "sqlite:///there.db")
    assert App().settings.store == "sqlite:///there.db"
    assert App("here.db").settings.store == "here.db"


async def test_a_folder_that_is_not_there_is_told_at_the_first_use(tmp_path):
    app = App(tmp_path / "missing" / "app.db")
    with pytest.raises(StoreUnreachable, match="is not a directory"):
        await app.submit("kind")
    (tmp_path / "missing").mkdir()
    async with app:
        assert (await app.submit("kind")).id


def test_the_engine_and_workers_go_by_the_settings():
    settings = Settings(lease=30, concurrency=3, queues=("a",), organization="acme")
    assert engine_settings(settings).lease == 30
    assert worker_settings(settings).concurrency == 3
    assert worker_settings(settings).organizations == ("acme",)
    assert worker_settings(settings, concurrency=5).concurrency == 5
    with pytest.raises(Misuse, match="no option 'concurrencyy'"):
        worker_settings(settings, concurrencyy=5)
