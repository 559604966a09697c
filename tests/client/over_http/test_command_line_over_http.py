"""The commands' own tests with a gateway's URL in the place of a file."""

import pytest

from cli.conftest import perdure
from cli.test_looking import *  # noqa: F403
from client.serving import served_by_a_thread
from perdure.client.transport import Transport

__all__ = ["perdure"]


# Who acts is the gateway's to say, and the schema is only there where the store is: both are tested below.
del test_a_cancelled_task_tells_so, test_the_schema_is_made_once  # noqa: F821
del test_who_acts_is_whom_the_environment_names_even_if_it_is_the_default_name  # noqa: F821


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with served_by_a_thread(tmp_path / "store.db") as url:
        monkeypatch.setenv("PERDURE_STORE", url)
        yield url


def test_a_cancel_is_of_whoever_the_gateway_takes_it_for(perdure):
    task_id = perdure("submit", "k").out.strip()
    assert perdure("task", "cancel", task_id, "--reason", "no longer wanted", "--json").code == 0
    cancel = perdure("task", "show", task_id, "--json").json["cancel"]
    assert (cancel["text"], cancel["actor"]) == ("no longer wanted", "local")


def test_the_schema_is_looked_at_where_the_store_is(perdure, store):
    for command in ("migrate", "status"):
        answer = perdure("db", command, "--json")
        assert answer.code == 2
        assert "needs the store itself" in answer.problem["message"]
        assert store in answer.problem["message"]


def test_no_gateway_is_no_store(perdure, store, monkeypatch):
    monkeypatch.setenv("PERDURE_STORE", "http://127.0.0.1:9")
    monkeypatch.setitem(Transport.__init__.__kwdefaults__, "patience", 0.1)
    answer = perdure("task", "list", "--json")
    assert answer.code == 3
    assert answer.problem["code"] == "store_unreachable"


def test_a_url_that_cannot_be_a_gateways_is_refused(perdure):
    for url in ("http://", "http://user:secret@host", "https://host?x=1"):
        answer = perdure("task", "list", "--store", url, "--json")
        assert answer.code == 2
        assert "secret" not in answer.err
