"""Doing something to all tasks that a filter lets through, over HTTP: one request a step."""

from typing import Any

import msgspec

from perdure import wire
from perdure.client.problems import error_of
from perdure.client.transport import Repeat, Request, Transport
from perdure.engine.act_on_matching import Act, Matching, Step, chosen
from perdure.wire.shapes import instant

_PATHS = {
    Act.CANCEL: "/v1/tasks/cancel-matching",
    Act.REQUEUE: "/v1/dead-letters/requeue-matching",
    Act.DISCARD: "/v1/dead-letters/discard-matching",
    Act.PURGE: "/v1/dead-letters/purge-matching",
}


async def act_on_matching(transport: Transport, asked: Matching) -> Step:
    """Take one step. The same again would find less than the first, so it is only sent again if it did not arrive."""
    request = Request("POST", _PATHS[asked.act], msgspec.json.encode(_body(asked)), repeat=Repeat.UNSENT)
    step: wire.MatchingStep = await transport.ask(request, wire.MatchingStep)
    return Step(step.matched, step.counts, [(each.id, error_of(each.problem)) for each in step.refused], step.cursor)


def _body(asked: Matching) -> wire.MatchingTasks:
    chosen(asked.act, asked.where)
    where = asked.where
    said: dict[str, Any] = {
        "kinds": list(where.kinds),
        "queues": list(where.queues),
        "labels": dict(where.labels),
        "job": where.job,
        "submitters": list(where.submitters),
        "limit": asked.limit,
        "cursor": asked.cursor,
        "dry_run": asked.dry_run,
    }
    if asked.act is Act.CANCEL:
        return wire.CancelMatching(**said, reason=asked.text)
    said |= {
        "reasons": list(where.reasons),
        "ended_from": instant(where.ended_from_us),
        "ended_before": instant(where.ended_before_us),
    }
    match asked.act:
        case Act.REQUEUE:
            return wire.RequeueMatching(**said, rate=asked.rate)
        case Act.PURGE:
            return wire.PurgeMatching(**said, discarded=where.discarded)
        case _:
            return wire.MatchingDeadLetters(**said)
