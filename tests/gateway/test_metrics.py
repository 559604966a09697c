"""What `/metrics` tells: exactly the documented families, and what happened."""

import contextlib
import json
import re
import shutil
import socket
import subprocess
import threading
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from gateway.asking import Asker
from gateway.lives import dead, held, submitted
from gateway.serving import PATIENCE, served_process
from perdure.telemetry.metrics import FAMILIES, LABEL_VALUES_MAX
from skipping import skip


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
    assert sample(text, 'perdure_dead_letters{queue="default"}') == 1
    assert sample(text, "perdure_workers_active") == 1
    assert sample(text, 'perdure_http_requests_total{route="submit_tasks",status="202"}') == 3


async def test_dead_letters_that_are_gone_are_told_as_none(asker: Asker):
    task_id = await dead(asker)
    assert sample(await exposition(asker), 'perdure_dead_letters{queue="default"}') == 1
    answer = await asker.ask("POST", f"/v1/dead-letters/{task_id}/requeue", {})
    assert (answer.status, answer.json["outcome"]) == (202, "requeued")
    assert sample(await exposition(asker), 'perdure_dead_letters{queue="default"}') == 0


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


def need(program: str) -> None:
    if shutil.which(program) is None:
        skip(f"{program} is not installed (Debian: prometheus)")


async def test_promtool_finds_nothing_to_complain_about(asker: Asker):
    need("promtool")
    await dead(asker)
    text = await exposition(asker)
    run = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout + run.stderr) == (0, "")


def test_a_real_prometheus_scrapes_it(tmp_path: Path):
    need("prometheus")
    with served_process(tmp_path, "all") as (_, url):
        target = url.removeprefix("http://")
        config = {
            "global": {"scrape_interval": "1s"},
            "scrape_configs": [{"job_name": "perdure", "static_configs": [{"targets": [target]}]}],
        }
        (tmp_path / "prometheus.yml").write_text(json.dumps(config), encoding="utf-8")
        listen = f"127.0.0.1:{free_port()}"
        command = ["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data"]
        scraper = subprocess.Popen(
            [*command, f"--web.listen-address={listen}"], cwd=tmp_path, stderr=subprocess.DEVNULL
        )
        try:
            wait_until(lambda: scraped(listen, "perdure_info") == ["1"])
            wait_until(lambda: scraped(listen, 'up{job="perdure"}') == ["1"])
        finally:
            scraper.terminate()
            scraper.wait(PATIENCE)


def scraped(listen: str, query: str) -> list[str]:
    with contextlib.suppress(OSError):
        address = f"http://{listen}/api/v1/query?{urlencode({'query': query})}"
        with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
            return [each["value"][1] for each in json.load(answer)["data"]["result"]]
    return []


def wait_until(condition: Any) -> None:
    pause = threading.Event()
    for _ in range(PATIENCE * 5):
        if condition():
            return
        pause.wait(0.2)
    raise AssertionError("it did not come")


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port
