"""Breakers as the command line tells of them."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perdure.domain.breaker import Breaker
    from perdure.store.views import BreakerView


def breaker_line(breaker: "BreakerView") -> str:
    """How a breaker stands, in a line."""
    from perdure.cli.output import shown_instant
    from perdure.domain.breaker import BreakerState

    counted = f"{breaker.failures} of {breaker.attempts} attempts failed"
    last = f"{breaker.last_failures} of {breaker.last_attempts} had failed" if breaker.last_attempts else "by hand"
    if breaker.state is BreakerState.OPEN:
        return f"open until {shown_instant(breaker.until_us)} ({last}); then probes begin"
    if breaker.state is BreakerState.HALF_OPEN:
        return f"half open since {shown_instant(breaker.until_us)}: probes begin, {counted}"
    trips = "once" if breaker.trips == 1 else f"{breaker.trips} times"
    return f"closed: {counted} lately; it has opened {trips}"


def breaker_rule(breaker: "Breaker") -> str:
    """When a breaker opens, and for how long, in a line."""
    when = []
    if breaker.failures is not None:
        when.append(f"{breaker.failures} attempts failed")
    if breaker.share is not None:
        when.append(f"{breaker.share:.0%} of {breaker.min_attempts} or more attempts failed")
    return f"when {' or '.join(when)} within {breaker.window:g} s, for {breaker.open_for:g} s"


def breaker_facts(breaker: "BreakerView") -> dict[str, Any]:
    """How a breaker stands, for programs."""
    from perdure.cli.output import plain

    shown: dict[str, Any] = plain(breaker)
    return shown
