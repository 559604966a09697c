"""`perdure kind show`, `trip` and `reset`: how a breaker stands, and turning it by hand."""

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
    assert "closed: 0 of 0 attempts failed lately" in perdure("kind", "show", "card.charge").out
    assert "open until" in perdure("kind", "trip", "card.charge", "--for", "60").out
    assert perdure("kind", "show", "card.charge", "--json").json["breaker"]["state"] == "open"
    assert perdure("kind", "reset", "card.charge", "--json").json["state"] == "closed"


def test_a_kind_without_a_breaker_is_told_what_to_do_instead(perdure: Perdure) -> None:
    perdure("kind", "pause", "plain")
    assert perdure("kind", "show", "plain", "--json").json["breaker"] is None
    refused = perdure("kind", "trip", "plain")
    assert (refused.code, "pause it" in refused.err) == (2, True)
    assert perdure("kind", "show", "nobody").code == 2
