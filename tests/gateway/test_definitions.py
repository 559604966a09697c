"""Documents over HTTP: ETag, If-Match, If-None-Match."""

from typing import Any

import pytest

from gateway.asking import Asker
from gateway.lives import submitted

QUEUE = "/v1/definitions/queues/mail"
PATHS = [QUEUE, "/v1/definitions/organizations/default", "/v1/definitions/kinds/email.send"]


@pytest.mark.parametrize("path", PATHS)
async def test_the_life_of_a_document(path: str, asker: Asker):
    assert (await asker.ask("GET", path)).status == 404
    made = await asker.ask("PUT", path, {}, headers={"if-none-match": "*"})
    assert made.status == 201
    etag = made.headers["etag"]
    assert etag[0] == etag[-1] == '"'
    read = await asker.ask("GET", path)
    assert (read.status, read.headers["etag"], read.json) == (200, etag, made.json)
    same = await asker.ask("GET", path, headers={"if-none-match": etag})
    assert (same.status, same.data, same.headers["etag"]) == (304, b"", etag)
    assert "content-length" not in same.headers
    other = {"priority": 9} if "kinds" in path else {"depth": 9}
    changed = await asker.ask("PUT", path, other, headers={"if-match": etag})
    assert (changed.status, changed.headers["etag"] != etag) == (200, True)
    assert (await asker.ask("GET", path, headers={"if-none-match": etag})).status == 200
    for headers in ({"if-match": etag}, {"if-none-match": "*"}):
        refused = await asker.ask("PUT", path, {}, headers=headers)
        assert (refused.status, refused.json["code"]) == (412, "precondition_failed")
        assert f'"{refused.json["etag"]}"' == changed.headers["etag"]
    assert (await asker.ask("DELETE", path, headers={"if-match": etag})).status == 412
    assert (await asker.ask("DELETE", path, headers={"if-match": changed.headers["etag"]})).status == 204
    assert (await asker.ask("DELETE", path)).status == 404
    assert (await asker.ask("PUT", path, {}, headers={"if-match": "*"})).status == 412


async def test_what_a_document_says_holds(asker: Asker):
    await asker.ask("PUT", QUEUE, {"depth": 1})
    await submitted(asker, queue="mail")
    assert (await asker.ask("POST", "/v1/tasks", {"kind": "k", "queue": "mail"})).status == 429
    limits = {"depth": 1, "concurrency": None, "rate": None, "per": None}
    assert (await asker.ask("GET", QUEUE)).json == {"paused": False, "dead_letters": True, **limits}
    await asker.ask("PATCH", "/v1/queues/mail", {"dead_letters": False})
    assert (await asker.ask("GET", QUEUE)).json == {"paused": False, "dead_letters": False, **limits}


@pytest.mark.parametrize(
    ("path", "body", "status", "field"),
    [
        (QUEUE, {"depth": -1}, 422, "depth"),
        (QUEUE, {"paused": 1}, 422, "paused"),
        (QUEUE, {"colour": 1}, 422, "colour"),
        ("/v1/definitions/queues/no%20spaces", {}, 422, "queue"),
        ("/v1/definitions/kinds/k", {"kind": "other"}, 422, "kind"),
        ("/v1/definitions/kinds/k", {"retention": {"running": 1}}, 422, "retention"),
        ("/v1/definitions/organizations/other", {}, 404, None),
    ],
)
async def test_bad_documents_are_refused_and_not_stored(path: str, body: Any, status: int, field: str, asker: Asker):
    answer = await asker.ask("PUT", path, body)
    assert (answer.status, answer.json.get("field", "").partition(".")[0] or None) == (status, field)
    assert (await asker.ask("GET", path)).status in (404, 422)


@pytest.mark.parametrize("value", ["", "3", '"', '""', 'W/"1', '"a", "b"', '"' + "x" * 101 + '"', '"é"'])
async def test_what_is_no_tag_is_malformed(value: str, asker: Asker):
    await asker.ask("PUT", QUEUE, {})
    for method, header in (("PUT", "if-match"), ("GET", "if-none-match"), ("DELETE", "if-match")):
        if value:
            answer = await asker.ask(method, QUEUE, {} if method == "PUT" else None, headers={header: value})
            assert (answer.status, answer.json["field"].lower()) == (400, header)
    assert (await asker.ask("PUT", QUEUE, {}, headers={"if-none-match": '"3-1"'})).status == 400
    assert (await asker.ask("DELETE", QUEUE, headers={"if-none-match": "*"})).status == 400
    both = {"if-none-match": "*", "if-match": "*"}
    assert (await asker.ask("PUT", QUEUE, {}, headers=both)).status == 412


async def test_a_weak_tag_never_stands_for_what_is_stored(asker: Asker):
    tag = (await asker.ask("PUT", QUEUE, {})).headers["etag"]
    assert (await asker.ask("PUT", QUEUE, {"depth": 5}, headers={"if-match": f"W/{tag}"})).status == 412
    assert (await asker.ask("PUT", QUEUE, {"depth": 5}, headers={"if-match": tag})).status == 200
