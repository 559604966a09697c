"""perdure's own job files: what they say becomes a request, what is wrong is refused where it stands."""

import json
from pathlib import Path

import pytest

from perdure.engine.requests import Dependency
from perdure.errors import Invalid, Malformed, PerdureError
from perdure.jobfile import read_job
from perdure.jobfile.schedule_file import read_schedule_file

PIPELINE = """\
name: nightly
on_failure: continue
metadata: {owner: reports}
tasks:
  - name: extract
    kind: orders.extract
    payload: {day: "2026-11-29", limit: 10, ratio: 0.5, dry: false, none: null}
    priority: 7
    retry: {max_attempts: 5, backoff: fixed, base: 1}
  - name: render
    kind: report.render
    depends_on:
      - {name: extract, on_failure: fail}
    bindings: {orders: extract}
    trigger: all_done
    timeout: 60
"""


def refusal(text: str, name: str = "job.yaml") -> PerdureError:
    with pytest.raises((Invalid, Malformed)) as caught:
        read_job(name, text.encode())
    assert "\n" not in caught.value.message
    assert caught.value.exit_code == 2
    return caught.value


def test_a_yaml_file_becomes_a_request() -> None:
    job = read_job("job.yaml", PIPELINE.encode())
    extract, render = job.request.tasks
    assert (job.format, job.request.name, job.request.on_failure) == ("perdure", "nightly", "continue")
    assert extract.payload == {"day": "2026-11-29", "limit": 10, "ratio": 0.5, "dry": False, "none": None}
    assert extract.retry is not None
    assert extract.retry.max_attempts == 5
    assert (render.trigger, render.bindings, render.timeout) == ("all_done", {"orders": "extract"}, 60)
    assert job.parents() == {"extract": [], "render": ["extract"]}
    assert job.seconds is None


def test_a_field_may_take_the_results_of_several() -> None:
    text = TASK + "- {name: b, kind: k}\n- {name: c, kind: k, depends_on: [a, b], bindings: {x: [a, b]}}\n"
    assert read_job("job.yaml", text.encode()).request.tasks[2].bindings == {"x": ["a", "b"]}


def test_a_task_depends_on_those_whose_results_it_takes() -> None:
    text = (
        "name: j\ntasks:\n- {name: a, kind: k}\n- {name: b, kind: k}\n"
        "- {name: c, kind: k, depends_on: [{name: a, on_failure: continue}], bindings: {x: [a, b], y: b}}\n"
    )
    of_file = read_job("job.yaml", text.encode()).request.tasks[2]
    assert of_file.depends_on == [Dependency(name="a", on_failure="continue"), "b"]
    text = text.replace("depends_on: [{name: a, on_failure: continue}], ", "")
    of_file = read_job("job.yaml", text.encode()).request.tasks[2]
    assert (of_file.depends_on, of_file.trigger) == (["a", "b"], "all_succeeded")


def test_the_job_of_a_schedule_depends_so_too(tmp_path: Path) -> None:
    file = tmp_path / "set.yaml"
    text = "set: s\nschedules:\n  d:\n    cron: '@daily'\n    job:\n      name: j\n      tasks:\n"
    text += "      - {name: a, kind: k}\n      - {name: b, kind: k, bindings: {x: a}}\n"
    file.write_text(text)
    job = read_schedule_file(file).schedules["d"].job
    assert job is not None
    assert job.tasks[1].depends_on == ["a"]
    file.write_text(text.replace("{x: a}", "{x: c}"))
    with pytest.raises(Invalid, match="'b' takes the result of 'c', which the job does not have") as caught:
        read_schedule_file(file)
    assert caught.value.fields["line"] == 9


def test_the_same_job_in_json_is_the_same_request() -> None:
    value = {
        "name": "two",
        "tasks": [
            {"name": "a", "kind": "k", "payload": [1, "x"]},
            {"name": "b", "kind": "k", "depends_on": ["a"]},
        ],
    }
    text = "name: two\ntasks:\n- {name: a, kind: k, payload: [1, x]}\n- {name: b, kind: k, depends_on: [a]}\n"
    assert read_job("j.json", json.dumps(value).encode()).request == read_job("j.yml", text.encode()).request
    assert read_job("j", json.dumps(value).encode()).request.name == "two"


def test_a_job_of_sleeps_knows_its_seconds_and_can_be_scaled() -> None:
    text = "name: s\ntasks:\n- {name: a, kind: perdure.sleep, payload: {seconds: 2}}\n"
    job = read_job("s.yaml", text.encode(), time_scale=0.5)
    assert job.seconds == {"a": 1.0}
    assert job.request.tasks[0].payload == {"seconds": 1.0}


def test_plain_words_of_old_yaml_stay_text() -> None:
    text = "name: no\ntasks:\n- {name: on, kind: k, payload: [yes, 2026-11-29, 12:30, 0x10, 0o17, 1e3, ~]}\n"
    job = read_job("j.yaml", text.encode())
    assert job.request.tasks[0].payload == ["yes", "2026-11-29", "12:30", 16, 15, 1000.0, None]


def test_an_anchor_is_written_out() -> None:
    text = "name: j\ntasks:\n- {name: a, kind: k, payload: &p {x: 1}}\n- {name: b, kind: k, payload: *p}\n"
    assert read_job("j.yaml", text.encode()).request.tasks[1].payload == {"x": 1}


@pytest.mark.parametrize(
    ("text", "place", "fact"),
    [
        ("name: [", (2, 1), "did not find expected"),
        ("name: a\nname: b\n", (2, 1), "the key 'name' is there twice; the first one is on line 1"),
        ("name: a\ntasks: !!python/object:os.system []\n", (2, 8), "tag"),
        ("name: .inf\n", (1, 7), "finite"),
        ("name: 1e999\n", (1, 7), "too large"),
        ("1: a\n", (1, 1), "put it in quotes"),
        ("name: *gone\n", (1, 7), "refers to nothing"),
        ("name: a\n---\nname: b\n", (2, 1), "second document"),
        ("[" * 100 + "]" * 100, None, "deeper than"),
        ("", None, "nothing in it"),
        ("# only words\n", None, "nothing in it"),
    ],
)
def test_broken_yaml_is_refused_in_one_line_with_its_place(text: str, place: tuple[int, int] | None, fact: str) -> None:
    error = refusal(text)
    assert error.code == "malformed"
    assert fact in error.message
    if place is not None:
        assert (error.fields["line"], error.fields["column"]) == place
        assert error.message.startswith(f"job.yaml:{place[0]}:{place[1]}: ")


@pytest.mark.parametrize(
    ("text", "place", "fact"),
    [
        ('{"name": "a",\n "tasks": [}', (2, 12), "expecting value"),
        ('{"name": "a",\n "name": "b"}', (2, 2), "twice"),
        ('{"name": "a",\n "metadata": NaN}', None, "finite"),
        ('{"name": 1e999}', (1, 10), "too large"),
        ("", None, "nothing in it"),
        ("[" * 100_000, None, "nested"),
    ],
)
def test_broken_json_is_refused_in_one_line_with_its_place(text: str, place: tuple[int, int] | None, fact: str) -> None:
    error = refusal(text, "job.json")
    assert fact in error.message
    if place is not None:
        assert (error.fields["line"], error.fields["column"]) == place


def test_aliases_of_aliases_do_not_fill_the_memory() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert "aliases written out" in refusal("\n".join(lines)).message


def test_text_that_is_not_utf8_is_refused_with_its_place() -> None:
    with pytest.raises(Malformed, match=r"j\.yaml:2:3: the file is not UTF-8 text"):
        read_job("j.yaml", b"name: a\n# \xff\n")


TASK = "name: j\ntasks:\n- name: a\n  kind: k\n"


@pytest.mark.parametrize(
    ("text", "line", "fact"),
    [
        ("- a\n", 1, "a job is an object"),
        ("name: j\n", 1, "the field 'tasks' is missing"),
        (TASK + "  prioritty: 3\n", 5, "tasks[0] has no field 'prioritty'; did you mean 'priority'?"),
        (TASK + "  bind: {x: b}\n", 5, "no field 'bind'; did you mean 'bindings'?"),
        (TASK + "  priority: high\n", 5, "tasks[0].priority: must be a whole number, not text"),
        (TASK + "  queue: 12\n", 5, "must be text, not a whole number; put it in quotes"),
        (TASK + "  labels: {team: 5}\n", 5, "put it in quotes"),
        (TASK + "  trigger: never\n", 5, "there is no 'never' here; there is all_done"),
        (TASK + "  retry: {base: -1}\n", 5, "base must be between"),
        (TASK + "  retry: {bace: 1}\n", 5, "did you mean 'base'?"),
        (TASK + "  unique: {bi: [doc]}\n", 5, "tasks[0].unique.bi: there is no field 'bi'; there is by, max_wait"),
        (TASK + "  unique: {by: doc, on_conflict: debounce}\n", 5, "debounce needs wait"),
        (TASK + "- kind: k\n", 5, "the field 'name' is missing"),
        (TASK + "- {name: a, kind: k}\n", 5, "same name: 'a'"),
        (TASK + "  depends_on: [a]\n", 3, "depends on itself"),
        (TASK + "  depends_on: [zebra]\n", 5, "'zebra', which the job does not have"),
        (TASK + "  depends_on: [b]\n- {name: b, kind: k, depends_on: [a]}\n", 6, "in a circle: "),
        (TASK + "  depends_on: [b, b]\n- {name: b, kind: k}\n", 6, "twice in depends_on"),
        (TASK + "  bindings: {x: b}\n", 5, "bindings.x: 'a' takes the result of 'b', which the job does not have"),
        (TASK + "  bindings: {x: [a, b]}\n", 5, "'a' takes the result of 'b'"),
        (TASK + "  bindings: {x: a}\n", 3, "depends on itself"),
        (TASK + "  bindings: {x: b}\n- {name: b, kind: k, bindings: {x: a}}\n", 6, "in a circle: "),
        ("name: j\ntasks: []\n", 2, "at least one task"),
    ],
)
def test_what_breaks_a_rule_is_refused_at_its_line(text: str, line: int, fact: str) -> None:
    error = refusal(text)
    assert error.code == "invalid"
    assert fact in error.message
    assert error.fields["line"] == line


def test_json_is_placed_too() -> None:
    text = '{\n\t"name": "j",\n\t"tasks": [\n\t\t{"name": "a", "kind": "k", "priority": "x"}\n\t]\n}'
    error = refusal(text, "j.json")
    assert error.message == "j.json:4:30: tasks[0].priority: must be a whole number, not text"


def test_the_message_of_a_circle_names_it() -> None:
    text = (
        "name: j\ntasks:\n"
        "- {name: a, kind: k, depends_on: [c]}\n"
        "- {name: b, kind: k, depends_on: [a]}\n"
        "- {name: c, kind: k, depends_on: [b]}\n"
    )
    assert set(refusal(text).fields["names"]) == {"a", "b", "c"}
