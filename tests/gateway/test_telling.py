"""What is told over the wire is read back as the same view."""

from gateway.asking import Asker
from gateway.lives import dead, held, job, registered
from perdure import wire
from perdure.wire.telling import counts, ended_task, read, read_counts, read_ended, told


async def test_every_view_survives_the_way_there_and_back(asker: Asker):
    import msgspec

    task_id = await dead(asker)
    await held(asker, 2)
    one = (await job(asker))["id"]
    await registered(asker)
    await asker.ask("POST", f"/v1/jobs/{one}/cancel", {"reason": "why"})
    views = asker.system.engine.views
    shown = [
        (wire.Task, [await views.task("default", task_id)]),
        (wire.Attempt, await views.attempts("default", task_id)),
        (wire.Event, await views.events("default", task_id)),
        (wire.Job, [await views.job("default", one)]),
        (wire.JobTask, await views.job_tasks("default", one)),
        (wire.Queue, await views.queues("default")),
        (wire.Worker, await views.workers("default", None)),
    ]
    for body, rows in shown:
        assert rows
        for row in rows:
            sent = msgspec.json.decode(msgspec.json.encode(told(row, body)), type=body)
            assert read(sent, type(row)) == row
    overview = await views.overview("default")
    assert read_counts(counts(overview)) == overview
    [ended] = await views.ended("default", [task_id])
    assert read_ended(msgspec.json.decode(msgspec.json.encode(ended_task(ended)), type=wire.EndedTask)) == ended
