"""Everything that the client asks for is in the gateway's table."""

from typing import Any

import pytest

from perdure.ambient import Ids, SystemClock
from perdure.client.operations import RemoteOperations
from perdure.client.transport import Request
from perdure.domain.attempt import Hold, Renewal, Report
from perdure.domain.outcome import HandedBack
from perdure.engine.act_on_matching import Act, Matching
from perdure.engine.requests import JobRequest, JobTaskRequest, KindDefinition, NewTask, Principal, TaskRequest
from perdure.errors import NotFound
from perdure.gateway.paths import Paths
from perdure.gateway.routes import ROUTES
from perdure.store.flow_views import GateFilter
from perdure.store.ledger import WorkerInfo, WorkerOrder
from perdure.store.views import TaskFilter

BY = Principal("somebody")
ID = Ids(SystemClock()).new()
HOLD = Hold("default", ID, ID, "token")
WORKER = WorkerInfo(ID, "w", "h", 1, "1", "", ("k",), ("q",), (), (), 3)


class Recorder:
    """In the place of a transport: it notes requests, and answers none."""

    url = "http://recorder"

    def __init__(self) -> None:
        self.requests: list[Request] = []

    async def ask(self, request: Request, answer: Any) -> Any:
        self.requests.append(request)
        raise NotFound("nothing is here")


CALLS = [
    lambda each: each.submit([TaskRequest(kind="k")], BY),
    lambda each: each.submit([TaskRequest(kind="k"), TaskRequest(kind="k")], BY),
    lambda each: each.submit_job(JobRequest(name="j", tasks=[JobTaskRequest(name="t", kind="k")]), BY),
    lambda each: each.declare([KindDefinition(kind="k")], BY),
    lambda each: each.kinds(BY),
    lambda each: each.register(WORKER),
    lambda each: each.heartbeat(ID, 1),
    lambda each: each.leave(ID),
    lambda each: each.claim(ID, 1, wait=5),
    lambda each: each.renew([Renewal(HOLD, True)]),
    lambda each: each.control(ID),
    lambda each: each.inputs(HOLD),
    lambda each: each.report([Report(HOLD, phase="planning")]),
    lambda each: each.add_tasks(HOLD, [NewTask(kind="k", name="t")]),
    lambda each: each.settle([(HOLD, HandedBack())]),
    lambda each: each.subscribe().wait(1),
    lambda each: each.cancel([ID], BY),
    lambda each: each.cancel_job(ID, BY),
    lambda each: each.retry_job(ID, BY),
    lambda each: each.redrive([ID], BY, {"a": 1}),
    lambda each: each.discard([ID], BY),
    *(lambda each, act=act: each.act_on_matching(Matching(act, TaskFilter(kinds=("k",))), BY) for act in Act),
    lambda each: each.views.tasks("default", TaskFilter(submitters=("a",), ended_from_us=1, ended_before_us=2), 10),
    lambda each: each.purge([ID], BY),
    lambda each: each.pause_queue("a/b", BY),
    lambda each: each.resume_queue("q", BY),
    lambda each: each.configure_queue("q", BY, depth=1),
    lambda each: each.purge_queue("q", BY),
    *(lambda each, order=order: each.order_worker(ID, order, BY) for order in WorkerOrder),
    lambda each: each.wait_ended("default", [ID], 0),
    lambda each: each.views.task("default", ID),
    lambda each: each.views.tasks("default", TaskFilter(kinds=("k",), labels=(("a", "b"),)), 10, "c"),
    lambda each: each.views.tasks("default", TaskFilter(discarded=False), 10),
    lambda each: each.views.attempts("default", ID),
    lambda each: each.views.events("default", ID),
    lambda each: each.views.parts("default", ID),
    lambda each: each.views.ended("default", [ID]),
    lambda each: each.views.job("default", ID),
    lambda each: each.views.job_progress("default", ID),
    lambda each: each.views.jobs("default", (), 10),
    lambda each: each.views.job_tasks("default", ID),
    lambda each: each.views.job_events("default", ID),
    lambda each: each.views.queues("default"),
    lambda each: each.views.breakers("default"),
    lambda each: each.flow.gates("a/b", BY, GateFilter(("x",), waiting=True), 10, "c"),
    lambda each: each.flow.pauses(BY),
    lambda each: each.flow.pause("kind", "a/b", BY),
    lambda each: each.flow.resume("organization", "default", BY),
    lambda each: each.flow.limit("queue", "a/b", {"rate": 1}, BY),
    lambda each: each.flow.trip("a/b", BY, 5),
    lambda each: each.flow.reset("k", BY),
    lambda each: each.views.workers("default", None),
    lambda each: each.views.overview("default"),
]


@pytest.mark.parametrize("call", CALLS)
async def test_a_call_asks_for_a_path_that_there_is(call):
    recorder = Recorder()
    operations = RemoteOperations(recorder, Ids(SystemClock()))  # type: ignore[arg-type]
    try:
        await call(operations)
    except NotFound:
        pass
    paths = Paths((route.method, route.path, route) for route in ROUTES)
    assert recorder.requests
    for request in recorder.requests:
        found = paths.find(request.method, request.path)
        assert (found.target.body is None) == (request.body is None) or found.target.optional
        if request.query:
            assert set(request.query) <= set(found.target.query.__struct_fields__)
