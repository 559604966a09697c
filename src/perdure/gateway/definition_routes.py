"""The routes of documents: of queues, kinds and organizations."""

from perdure import wire
from perdure.errors import Conflict, NotFound, PreconditionFailed, TooLarge
from perdure.gateway.route import Route

DEFINITIONS: tuple[Route, ...] = tuple(
    route
    for type, document in (
        ("queue", wire.QueueDocument),
        ("organization", wire.OrganizationDocument),
        ("kind", wire.KindDocument),
    )
    for route in (
        Route(
            "GET",
            f"/v1/definitions/{type}s/{{{type}}}",
            f"show_{type}_definition",
            f"{type}s:read",
            f"Show the document of a {type}" if type != "organization" else "Show the organization's document",
            document,
            problems=(NotFound,),
            statuses=(200, 304),
            conditional=True,
        ),
        Route(
            "PUT",
            f"/v1/definitions/{type}s/{{{type}}}",
            f"put_{type}_definition",
            f"{type}s:manage",
            f"Replace the document of a {type}" if type != "organization" else "Replace the organization's document",
            document,
            document,
            statuses=(200, 201),
            problems=(NotFound, Conflict, PreconditionFailed, TooLarge),
            conditional=True,
        ),
        Route(
            "DELETE",
            f"/v1/definitions/{type}s/{{{type}}}",
            f"delete_{type}_definition",
            f"{type}s:manage",
            f"Remove the document of a {type}" if type != "organization" else "Remove the organization's document",
            statuses=(204,),
            problems=(NotFound, Conflict, PreconditionFailed),
            conditional=True,
        ),
    )
)
