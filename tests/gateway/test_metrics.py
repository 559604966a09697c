"""What `/metrics` tells: exactly the documented families, and what happened."""

import re
import shutil
import subprocess

import pytest

from gateway.asking import Asker
from gateway.lives import dead, held, submitted
from perdure.telemetry.metrics import FAMILIES, LABEL_VALUES_MAX


async def exposition(asker: Asker) -> str:
    answer = await asker.ask("GET", "/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return answer.data.decode()


def sample(text: str, name: str) -> float:
    [found] = re.findall(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
    return float(found)


async def test_the_families_are_the_documented_ones(asker: Asker):
    told = dict(re.findall(r"^# TYPE (\S+) (\S+)$", await exposition(asker), re.MULTILINE))
    assert told == {family.name: family.sort for family in FAMILIES}


async def test_what_happens_is_counted(asker: Asker):
    await submitted(asker)
    await dead(asker, 1)
    hold = await held(asker, 2)
    await asker.ask("POST", "/v1/worker/hand-back", {"holds": [hold]})
    await asker.ask("POST", "/v1/worker/settle-one", {"hold": hold, "outcome": {"outcome": "succeeded"}})
    await asker.ask("POST", "/v1/tasks", {"kind": ""})
    text = await exposition(asker)
    assert sample(text, "perdure_tasks_submitted_total") == 3
    assert sample(text, "perdure_tasks_claimed_total") == 2
    assert sample(text, 'perdure_attempts_settled_total{outcome="failed"}') == 1
    assert sample(text, "perdure_attempts_released_total") == 1
    assert sample(text, 'perdure_lease_lost_total{operation="settle"}') == 1
    assert sample(text, 'perdure_refused_total{code="invalid"}') == 1
    assert sample(text, 'perdure_refused_total{code="lease_lost"}') == 1
    assert sample(text, 'perdure_queue_tasks{queue="default",state="queued"}') == 2
    assert sample(text, "perdure_workers_active") == 1
    assert sample(text, 'perdure_http_requests_total{route="submit_tasks",status="202"}') == 3


async def test_a_label_has_few_values_however_many_queues_there_are(asker: Asker):
    for number in range(LABEL_VALUES_MAX + 20):
        await submitted(asker, queue=f"q{number}")
    queues = set(re.findall(r'perdure_queue_tasks\{queue="([^"]+)"', await exposition(asker)))
    assert len(queues) == LABEL_VALUES_MAX + 1
    assert "other" in queues


async def test_paths_that_do_not_exist_make_no_labels(asker: Asker):
    for number in range(20):
        await asker.ask("GET", f"/v1/nothing/{number}")
    assert sample(await exposition(asker), 'perdure_http_requests_total{route="unmatched",status="404"}') == 20


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (Debian: prometheus)")
async def test_promtool_finds_nothing_to_complain_about(asker: Asker):
    await dead(asker)
    text = await exposition(asker)
    run = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout + run.stderr) == (0, "")
