"""Logs of tasks over HTTP: sent by workers, read by whoever may."""

from gateway.asking import Asker
from gateway.lives import NOBODY, held, submitted


async def test_lines_that_a_worker_sends_are_read_in_pages(asker: Asker):
    hold = await held(asker)
    sent = [{"sequence": each, "level": "info", "message": f"line {each}", "ago_us": 10} for each in (1, 2, 3)]
    sent[2]["dropped"] = 4
    answer = await asker.ask("POST", "/v1/worker/report", {"reports": [{"hold": hold, "logs": sent}]})
    assert answer.json["answers"] == [{"replayed": False, "cancel_us": None, "problem": None}]
    path = f"/v1/tasks/{hold['task_id']}/logs"
    first = (await asker.ask("GET", path, query={"limit": 2})).json
    assert [each["message"] for each in first["logs"]] == ["line 1", "line 2"]
    assert first["more"] is True
    rest = (await asker.ask("GET", path, query={"cursor": first["cursor"]})).json
    [line] = rest["logs"]
    assert line["attempt_id"] == hold["attempt_id"]
    assert (line["level"], line["message"], line["dropped"]) == ("info", "line 3", 4)
    assert rest["more"] is False
    end = (await asker.ask("GET", path, query={"cursor": rest["cursor"]})).json
    assert end == {"logs": [], "cursor": rest["cursor"], "more": False}


async def test_a_task_without_lines_has_an_empty_log_and_no_task_has_none(asker: Asker):
    task_id = await submitted(asker)
    assert (await asker.ask("GET", f"/v1/tasks/{task_id}/logs")).json == {"logs": [], "cursor": None, "more": False}
    assert (await asker.ask("GET", f"/v1/tasks/{NOBODY}/logs")).status == 404
    assert (await asker.ask("GET", f"/v1/tasks/{task_id}/logs", query={"cursor": "nonsense"})).status == 400
    assert (await asker.ask("GET", f"/v1/tasks/{task_id}/logs", query={"limit": 0})).status == 400


async def test_bad_lines_are_refused_with_the_field(asker: Asker):
    hold = await held(asker)
    good = {"sequence": 1, "level": "info", "message": "m"}
    for field, value in {"sequence": 0, "level": "loud", "message": 7, "ago_us": -1, "unknown": 1}.items():
        body = {"reports": [{"hold": hold, "logs": [{**good, field: value}]}]}
        answer = await asker.ask("POST", "/v1/worker/report", body)
        assert answer.status in (400, 422), field
        assert field in answer.json["field"], answer.json
    twice = await asker.ask("POST", "/v1/worker/report", {"reports": [{"hold": hold, "logs": [good, good]}]})
    assert twice.json["answers"][0]["problem"]["field"] == "logs.sequence"


async def test_whole_numbers_with_a_point_are_read_in_every_line(asker: Asker):
    hold = await held(asker)
    sent = [{"sequence": float(each), "level": "info", "message": "m", "ago_us": 1.0} for each in range(1, 101)]
    answer = await asker.ask("POST", "/v1/worker/report", {"reports": [{"hold": hold, "logs": sent}]})
    assert answer.json["answers"][0]["problem"] is None
    assert len((await asker.ask("GET", f"/v1/tasks/{hold['task_id']}/logs", query={"limit": 1000})).json["logs"]) == 100
    sent[50]["ago_us"] = 1.5
    refused = await asker.ask("POST", "/v1/worker/report", {"reports": [{"hold": hold, "logs": sent}]})
    assert (refused.status, refused.json["field"]) == (422, "reports[0].logs[50].ago_us")
