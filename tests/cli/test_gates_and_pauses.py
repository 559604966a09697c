"""`perdure kind gates` and `perdure pauses`: who has the slots of limits, who waits, and what is stopped by whom."""

from pathlib import Path

import perdure as library
from cli.conftest import Perdure


def submit(store: Path) -> list[str]:
    """Tasks of two customers, more of one than its limit lets through; their ids."""
    app = library.App(str(store))

    @app.task("mail.send", limits=[library.Limit(concurrency=1, by="customer"), library.Limit(rate=5, per=60)])
    def send(customer: str) -> None: ...

    with app.sync as sync:
        return [sync.submit(send, customer).id for customer in ("acme", "acme", "other")]


def test_gates_are_shown_with_who_is_at_them(perdure: Perdure, store: Path) -> None:
    first, second, other = submit(store)
    shown = perdure("kind", "gates", "mail.send").out
    assert "mail.send: 5 in 60 s; 2 taken, 0 waiting" in shown
    assert 'mail.send by customer "acme": 1 at once; 1 taken, 1 waiting' in shown
    assert f"has a slot  {first}  queued, since " in shown
    assert f"waits       {second}  submitted " in shown
    (gate,) = perdure("kind", "gates", "mail.send", "--key", "other", "--json").json["gates"]
    assert [each["task"] for each in gate["holders"]] == [other]
    assert [each["since_at"][-1] for each in gate["holders"]] == ["Z"]
    waiting = perdure("kind", "gates", "mail.send", "--waiting", "--json").json
    assert ([each["key"] for each in waiting["gates"]], waiting["cursor"]) == (['"acme"'], None)
    assert "no gates" in perdure("kind", "gates", "mail.send", "--key", "nobody").out
    assert perdure("kind", "gates", "nobody").code == 2


def test_a_page_of_gates_says_how_to_go_on(perdure: Perdure, store: Path) -> None:
    submit(store)
    page = perdure("kind", "gates", "mail.send", "--limit", "1")
    assert '"acme"' in page.out
    cursor = page.err.split("--cursor ")[1].strip()
    assert '"other"' in perdure("kind", "gates", "mail.send", "--limit", "1", "--cursor", cursor).out


def test_everything_that_is_stopped_is_in_one_list(perdure: Perdure, store: Path) -> None:
    submit(store)
    assert "nothing is stopped" in perdure("pauses").out
    perdure("queue", "pause", "mail")
    perdure("kind", "pause", "mail.send")
    perdure("organization", "pause")
    told = perdure("pauses", "--json").json["pauses"]
    assert [(each["type"], each["name"], each["state"]) for each in told] == [
        ("queue", "mail", "paused"),
        ("kind", "mail.send", "paused"),
        ("organization", "default", "paused"),
    ]
    assert all(each["since_at"] and each["actor"] for each in told)
    assert "mail.send" in perdure("pauses").out
