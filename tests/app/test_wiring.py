"""Which stores can be named, and what becomes of the settings."""

import pytest

from perdure import App
from perdure.errors import Misuse, StoreUnreachable
from perdure.settings import Settings
from perdure.wiring import engine_settings, postgres_url, same_store, shown, sqlite_path, worker_settings


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


@pytest.mark.parametrize("url", ["redis://x", "valkey+unix://x"])
def test_what_comes_later_is_refused_and_what_works_is_named(url):
    with pytest.raises(Misuse, match=r"not available in this version: use a SQLite file"):
        App(url)


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "PostgreSQL", "postgresql+psycopg"])
def test_a_database_is_named_as_its_driver_and_others_name_it(scheme):
    assert postgres_url(f"{scheme}://me@host/shop") == "postgresql://me@host/shop"


@pytest.mark.parametrize("scheme", ["cockroachdb", "cockroachdb+psycopg"])
def test_a_database_of_cockroachdb_is_known_by_its_scheme(scheme):
    assert postgres_url(f"{scheme}://me@host/shop") == "cockroachdb://me@host/shop"


def test_a_missing_driver_is_named_with_what_brings_it(monkeypatch):
    monkeypatch.setattr("perdure.wiring.find_spec", lambda name: None)
    with pytest.raises(Misuse, match=r"pip install 'path/to/clone\[postgres\]'"):
        App("postgresql://host/db")


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("postgresql://me:s3cret@host:1/db?sslmode=require", "postgresql://me@host:1/db?sslmode=require"),
        (
            "postgresql://host/db?user=me&password=s3cret&sslmode=require",
            "postgresql://host/db?user=me&password=***&sslmode=require",
        ),
        ("postgresql://me:p@ss@host/db", "postgresql://me@host/db"),
        ("perdure.db", "perdure.db"),
    ],
)
def test_a_password_is_shown_to_nobody(url, seen):
    assert shown(url) == seen


def test_the_same_store_is_known_by_other_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert same_store("perdure.db", f"sqlite:///{tmp_path}/perdure.db")
    assert same_store("postgresql://me:a@host/shop", "postgres://host:5432/shop?user=you")
    assert not same_store("postgresql://host/shop", "postgresql://host/other")
    assert not same_store("perdure.db", "http://127.0.0.1:7373")


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
