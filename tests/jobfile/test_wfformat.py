"""WfFormat files of every version become jobs of sleeps."""

import json
from typing import Any

import pytest

from perdure.errors import Invalid, PerdureError
from perdure.jobfile import JobFile, read_job


def v13() -> dict[str, Any]:
    """Tasks with their run times, referred to by name; each edge at one end only."""
    return {
        "name": "old",
        "schemaVersion": "1.3",
        "workflow": {
            "makespan": 9,
            "machines": [{"nodeName": "m"}],
            "tasks": [
                {"name": "split_ID1", "id": "ID1", "type": "compute", "runtime": 2, "children": ["work_ID2"]},
                {"name": "work_ID2", "id": "ID2", "runtime": 4.5, "machine": "m"},
                {"name": "join_ID3", "id": "ID3", "runtime": 1, "parents": ["work_ID2", "split_ID1"]},
            ],
        },
    }


def v14() -> dict[str, Any]:
    return {
        "name": "middle",
        "schemaVersion": "1.4",
        "workflow": {
            "makespanInSeconds": 9,
            "tasks": [
                {"name": "a", "id": "1", "runtimeInSeconds": 2, "parents": [], "children": ["b"]},
                {"name": "b", "id": "2", "runtimeInSeconds": 3, "parents": ["a"], "children": []},
            ],
        },
    }


def v15() -> dict[str, Any]:
    return {
        "name": "new",
        "schemaVersion": "1.5",
        "workflow": {
            "specification": {
                "tasks": [
                    {"name": "same", "id": "a", "parents": [], "children": ["b"], "inputFiles": ["f"]},
                    {"name": "same", "id": "b", "parents": ["a"], "children": []},
                ],
                "files": [{"id": "f", "sizeInBytes": 1}],
            },
            "execution": {
                "makespanInSeconds": 9,
                "tasks": [{"id": "b", "runtimeInSeconds": 3}, {"id": "a", "runtimeInSeconds": 0.5, "avgCPU": 9}],
            },
        },
    }


def read(value: Any, time_scale: float = 1.0) -> JobFile:
    return read_job("flow.json", json.dumps(value, indent=1).encode(), time_scale)


def refusal(value: Any) -> PerdureError:
    with pytest.raises(Invalid) as caught:
        read(value)
    assert "\n" not in caught.value.message
    assert caught.value.message.startswith("flow.json:")
    return caught.value


def test_version_1_3_takes_both_ends_of_an_edge_into_account() -> None:
    job = read(v13())
    assert job.format == "wfformat"
    assert job.parents() == {"split_ID1": [], "work_ID2": ["split_ID1"], "join_ID3": ["work_ID2", "split_ID1"]}
    assert job.seconds == {"split_ID1": 2.0, "work_ID2": 4.5, "join_ID3": 1.0}
    assert job.notes == ()


def test_version_1_4_has_its_run_times_in_seconds() -> None:
    job = read(v14())
    assert job.parents() == {"a": [], "b": ["a"]}
    assert job.seconds == {"a": 2.0, "b": 3.0}


@pytest.mark.parametrize("version", ["1.5", "1.6"])
def test_from_version_1_5_on_graph_and_run_times_are_joined_by_id(version: str) -> None:
    job = read(v15() | {"schemaVersion": version})
    assert job.parents() == {"a": [], "b": ["a"]}
    assert job.seconds == {"a": 0.5, "b": 3.0}


def test_an_older_task_may_be_referred_to_by_its_id_too() -> None:
    value = v14()
    value["workflow"]["tasks"][1]["parents"] = ["1"]
    assert read(value).parents() == {"a": [], "b": ["a"]}


def test_older_tasks_of_equal_names_are_told_apart_by_id() -> None:
    value = v14()
    for task in value["workflow"]["tasks"]:
        task.update(name="same", parents=[], children=[])
    value["workflow"]["tasks"][1]["parents"] = ["1"]
    assert read(value).parents() == {"1": [], "2": ["1"]}


def test_each_task_sleeps_for_its_recorded_run_time_times_the_scale() -> None:
    tasks = read(v15(), time_scale=0.1).request.tasks
    assert {task.kind for task in tasks} == {"perdure.sleep"}
    assert [task.payload["seconds"] for task in tasks] == pytest.approx([0.05, 0.3])


def test_a_missing_run_time_is_nothing_and_is_said() -> None:
    value = v15()
    del value["workflow"]["execution"]
    job = read(value)
    assert job.seconds == {"a": 0.0, "b": 0.0}
    assert job.notes == ("2 of 2 tasks have no recorded run time and take 0 s: a, b",)


def test_a_dependency_named_at_one_end_only_holds_and_is_said() -> None:
    value = v15()
    value["workflow"]["specification"]["tasks"][1]["parents"] = []
    job = read(value)
    assert job.parents() == {"a": [], "b": ["a"]}
    assert "1 dependencies are named by only one" in job.notes[0]


def test_an_unknown_version_is_refused() -> None:
    assert "only 1.3, 1.4, 1.5" in refusal(v15() | {"schemaVersion": "1.1"}).message
    assert "WfFormat None" in refusal({"workflow": {}}).message


def broken_specification(index: int, **changes: Any) -> dict[str, Any]:
    value = v15()
    value["workflow"]["specification"]["tasks"][index].update(changes)
    return value


@pytest.mark.parametrize(
    ("value", "field", "fact"),
    [
        (broken_specification(1, parents=["zebra"]), "parents[0]", "names 'zebra', which the workflow does not have"),
        (broken_specification(1, children=["zebra"]), "children[0]", "names 'zebra'"),
        (broken_specification(0, parents=["b"]), "tasks[1].id", "in a circle"),
        (broken_specification(1, id="a"), "tasks[1].id", "two tasks of the workflow are called 'a'"),
        (broken_specification(1, id=7), "tasks[1].id", "as text"),
        (broken_specification(1, parents="a"), "tasks[1].parents", "a list of tasks"),
    ],
)
def test_a_broken_graph_is_refused_where_it_stands(value: dict[str, Any], field: str, fact: str) -> None:
    error = refusal(value)
    assert field in error.fields["field"]
    assert fact in error.message
    assert error.fields["line"] > 1


@pytest.mark.parametrize("runtime", [-1, "long", True])
def test_an_impossible_run_time_is_refused(runtime: Any) -> None:
    value = v15()
    value["workflow"]["execution"]["tasks"][1]["runtimeInSeconds"] = runtime
    assert "a number of seconds" in refusal(value).message


def test_run_times_must_be_of_tasks_that_exist() -> None:
    value = v15()
    value["workflow"]["execution"]["tasks"][1]["id"] = "zebra"
    assert "no task 'zebra'" in refusal(value).message


@pytest.mark.parametrize("workflow", [None, [], {}, {"tasks": {}}, {"specification": 1}, {"tasks": ["a"]}])
def test_a_workflow_of_the_wrong_shape_is_refused(workflow: Any) -> None:
    assert refusal({"schemaVersion": "1.5", "workflow": workflow}).code == "invalid"
