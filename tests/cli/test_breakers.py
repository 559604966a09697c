"""`perdure kind show`, `trip` and `reset`: how a breaker stands, and turning it by hand."""

import re
from pathlib import Path

import perdure as library
from cli.conftest import Perdure


def declare(store: Path) -> None:
    """Make a kind with a breaker known to the store."""
    app = library.App(str(store))

    @app.task("card.charge", breaker=library.Breaker(failures=3))
    def charge() -> None: ...

    with app.sync as sync:
        sync.submit(charge)


def test_a_breaker_is_shown_tripped_and_reset(perdure: Perdure, store: Path) -> None:
    declare(store)
    shown = perdure("kind", "show", "card.charge", "--json").json
    assert (shown["breaker"]["state"], shown["kind"]["breaker"]["failures"]) == ("closed", 3)
    told = perdure("kind", "show", "card.charge").out
    assert "closed: 0 of 0 attempts failed lately; it has opened 0 times" in told
    assert "when 3 attempts failed within 60 s, for 30 s" in told
    assert "open until" in perdure("kind", "trip", "card.charge", "--for", "60").out
    assert perdure("kind", "show", "card.charge", "--json").json["breaker"]["state"] == "open"
    assert perdure("kind", "reset", "card.charge", "--json").json["state"] == "closed"
    assert "it has opened once" in perdure("kind", "show", "card.charge").out


def test_what_a_kind_says_of_its_tasks_is_shown(perdure: Perdure, store: Path) -> None:
    app = library.App(str(store))

    @app.task(
        "report.send",
        timeout=1.5,
        max_attempts=7,
        unique=library.Unique(by="customer", on_conflict="replace"),
        breaker=library.Breaker(share=0.5, failures=20),
    )
    def send(customer: str, pages: list[int] | None = None) -> None: ...

    with app.sync as sync:
        sync.submit(send, customer="acme")
    told = perdure("kind", "show", "report.send").out
    assert "1.5 s" in told
    assert "replace, by customer" in told
    assert "when 20 attempts failed or 50% of 10 or more attempts failed within 60 s, for 30 s" in told
    assert re.search(r"^payload +customer: string, pages: array of integer \| null \(optional\)$", told, re.MULTILINE)
    assert "7; between them exponential from 5 s, at most 3600 s, give or take 20%" in told
    shown = perdure("kind", "show", "report.send", "--json").json["kind"]
    assert (set(shown["schema"]["properties"]), shown["retry"]["base"]) == ({"customer", "pages"}, 5.0)
    assert (shown["max_attempts"], shown["timeout"], shown["unique"]["by"]) == (7, 1.5, ["customer"])


def test_a_kind_without_a_breaker_is_told_what_to_do_instead(perdure: Perdure) -> None:
    perdure("kind", "pause", "plain")
    assert perdure("kind", "show", "plain", "--json").json["breaker"] is None
    refused = perdure("kind", "trip", "plain")
    assert (refused.code, "pause it" in refused.err) == (2, True)
    assert perdure("kind", "show", "nobody").code == 2
