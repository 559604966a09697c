"""The OpenAPI document: it describes the table, and generated requests find nothing that disagrees with it."""

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from gateway.asking import Asker
from gateway.lives import REQUEST, WORKER
from gateway.serving import TESTS, served_process
from perdure.gateway import problems
from perdure.gateway.routes import ROUTES

SCHEMATHESIS = str(Path(sys.executable).parent / "schemathesis")
CONFIG = str(Path(__file__).with_name("schemathesis.toml"))
MAX_EXAMPLES = os.environ.get("PERDURE_SCHEMA_EXAMPLES", "3")
SEED = os.environ.get("PERDURE_SCHEMA_SEED", "1")


async def test_the_document_has_every_route_and_resolves(asker: Asker):
    document = (await asker.ask("GET", "/openapi.json")).json
    assert document["openapi"] == "3.1.0"
    described = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert described == {(route.method, route.path) for route in ROUTES}
    text = (await asker.ask("GET", "/openapi.json")).data.decode()
    for name in set(re.findall(r"#/components/schemas/([^\"]+)", text)):
        assert name in document["components"]["schemas"]


async def test_the_reference_shows_every_route_and_needs_no_network(asker: Asker):
    page = (await asker.ask("GET", "/docs")).data.decode()
    for route in ROUTES:
        assert f'id="{route.name}"' in page
    assert not re.search(r"(?:src|href)=\"(?:https?:)?//", page)
    assert "<script" not in page


async def test_every_type_of_problem_has_a_page(asker: Asker):
    for cls in problems.classes():
        answer = await asker.ask("GET", problems.type_of(cls))
        assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert cls.code in answer.data.decode()
    assert (await asker.ask("GET", "/problems/nothing")).status == 404


def send(url: str, body: Any, method: str = "POST", refused: int | None = None) -> Any:
    """The answer to one request, which is refused with this status if one is said."""
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers, method=method)
    if refused is None:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request)
    assert caught.value.code == refused
    return None


def ask_for_the_rest(url: str) -> None:
    """What nobody meets by chance: a task that has ended, a body that is too large, a queue that is full."""
    worker = {"id": WORKER, "name": "w", "kinds": ["rest"], "queues": ["rest"], "capacity": 1}
    send(f"{url}/v1/worker/register", worker)
    task = send(f"{url}/v1/tasks", {"kind": "rest", "queue": "rest"})["id"]
    claim = {"worker_id": WORKER, "count": 1, "request_id": REQUEST.format(1)}
    [lease] = send(f"{url}/v1/worker/claim", claim)["leases"]
    send(f"{url}/v1/worker/settle-one", {"hold": lease["hold"], "outcome": {"outcome": "succeeded"}})
    send(f"{url}/v1/tasks/{task}/cancel", {}, refused=410)
    send(f"{url}/v1/tasks", {"kind": "rest", "payload": "x" * 300_000}, refused=413)
    send(f"{url}/v1/queues/full", {"depth": 0}, "PATCH")
    send(f"{url}/v1/tasks", {"kind": "rest", "queue": "full"}, refused=429)


@pytest.mark.timeout(400)
@pytest.mark.slow
def test_generated_requests_find_no_disagreement(tmp_path: Path):
    with served_process(tmp_path) as (_, url):
        environ = {**os.environ, "SCHEMATHESIS_HOOKS": "gateway.schema_hooks", "PYTHONPATH": str(TESTS)}
        environ["PERDURE_SCHEMA_COUNTS"] = str(tmp_path / "counts.json")
        command = [
            SCHEMATHESIS,
            "--config-file",
            CONFIG,
            "run",
            f"{url}/openapi.json",
            "--max-examples",
            MAX_EXAMPLES,
            "--seed",
            SEED,
        ]
        command += ["--phases", "examples,coverage,fuzzing", "--no-color"]
        run = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stdout[-20_000:]
        ask_for_the_rest(url)
        with urllib.request.urlopen(f"{url}/metrics") as answer:
            counted = re.findall(r'perdure_http_requests_total\{.*status="(\d+)"\}', answer.read().decode())
    assert set(counted) >= {"200", "202", "204", "400", "404", "405", "409", "410", "413", "415", "422", "429"}
    fitting = json.loads((tmp_path / "counts.json").read_text())
    refused = sum(number for status, number in fitting.items() if status in ("400", "405", "413", "415", "422"))
    assert refused <= sum(fitting.values()) / 10, fitting
    assert not {status for status in counted if status.startswith("5")}
