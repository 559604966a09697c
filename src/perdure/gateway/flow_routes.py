"""The routes about what may start: pauses, limits and breakers."""

from perdure import wire
from perdure.errors import Conflict, NotFound
from perdure.gateway.route import Route

_CHANGE = (NotFound, Conflict)

FLOW: tuple[Route, ...] = (
    Route(
        "GET",
        "/v1/kinds/{kind}",
        "show_kind",
        "kinds:read",
        "Show a kind, and how its breaker stands",
        wire.KindShown,
        problems=(NotFound,),
    ),
    Route(
        "GET",
        "/v1/kinds/{kind}/gates",
        "list_gates",
        "kinds:read",
        "List the gates of a kind's limits: who has their slots, how many wait, who is next",
        wire.Gates,
        query=wire.GateQuery,
        problems=(NotFound,),
    ),
    Route(
        "GET", "/v1/pauses", "list_pauses", "queues:read", "List what is stopped, since when and by whom", wire.Pauses
    ),
    *(
        Route(
            "POST",
            f"/v1/kinds/{{kind}}/{verb}",
            f"{verb}_kind",
            "kinds:manage",
            summary,
            wire.KindChanged,
            problems=_CHANGE,
        )
        for verb, summary in (
            ("pause", "Claim nothing of a kind from now on"),
            ("resume", "Let a kind be claimed again"),
        )
    ),
    Route("GET", "/v1/breakers", "list_breakers", "kinds:read", "List how breakers of kinds stand", wire.Breakers),
    Route(
        "POST",
        "/v1/kinds/{kind}/trip",
        "trip_kind",
        "kinds:manage",
        "Open the breaker of a kind by hand",
        wire.KindBreaker,
        wire.TripBreaker,
        optional=True,
        problems=_CHANGE,
    ),
    Route(
        "POST",
        "/v1/kinds/{kind}/reset",
        "reset_kind",
        "kinds:manage",
        "Close the breaker of a kind by hand",
        wire.KindBreaker,
        problems=_CHANGE,
    ),
    *(
        Route(
            "POST",
            f"/v1/organizations/{{organization}}/{verb}",
            f"{verb}_organization",
            "organizations:manage",
            summary,
            wire.OrganizationDocument,
            problems=_CHANGE,
        )
        for verb, summary in (
            ("pause", "Claim nothing of the organization from now on"),
            ("resume", "Let the organization be claimed again"),
        )
    ),
    Route(
        "PATCH",
        "/v1/queues/{queue}/limits",
        "limit_queue",
        "queues:manage",
        "Change the limits of a queue",
        wire.QueueDocument,
        wire.QueueLimits,
        problems=_CHANGE,
    ),
    Route(
        "PATCH",
        "/v1/organizations/{organization}/limits",
        "limit_organization",
        "organizations:manage",
        "Change the limits of the organization",
        wire.OrganizationDocument,
        wire.OrganizationLimits,
        problems=_CHANGE,
    ),
)
