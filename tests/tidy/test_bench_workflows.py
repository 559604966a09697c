"""What the replay of workflows finds in an effect ledger."""

import json
from pathlib import Path

import pytest
from bench.workflows import Workflow, faults, read

DOCUMENT = {
    "workflow": {
        "specification": {
            "tasks": [
                {"id": "a", "parents": [], "children": ["b"]},
                {"id": "b", "parents": [], "children": []},
                {"id": "c", "parents": ["b"], "children": []},
            ]
        },
        "execution": {"tasks": [{"id": "a", "runtimeInSeconds": 2}, {"id": "b", "runtimeInSeconds": 3}]},
    }
}
RIGHT = [("start", "a", 1), ("end", "a", 2), ("start", "b", 3), ("end", "b", 4), ("start", "c", 5), ("end", "c", 6)]


@pytest.fixture
def workflow(tmp_path: Path) -> Workflow:
    path = tmp_path / "w.json"
    path.write_text(json.dumps(DOCUMENT))
    return read(path)


def found(workflow: Workflow, effects: list[tuple[str, str, int]]) -> list[str]:
    """The faults of a ledger with these lines."""
    ledger = workflow.path.with_name("effects")
    lines = [json.dumps({"event": event, "name": name, "boot_us": at}) for event, name, at in effects]
    ledger.write_text("\n".join(lines))
    return faults(workflow, ledger)


def test_an_edge_holds_whichever_of_its_tasks_names_it(workflow: Workflow) -> None:
    assert workflow.parents == {"a": set(), "b": {"a"}, "c": {"b"}}
    assert (workflow.ideal(1), workflow.ideal(2)) == (5, 5)


def test_each_once_and_none_early_is_no_fault(workflow: Workflow) -> None:
    assert found(workflow, RIGHT) == []


@pytest.mark.parametrize(
    ("effects", "fault"),
    [
        ([*RIGHT, ("start", "b", 7)], "start of b: 2 times"),
        (RIGHT[:-1], "end of c: 0 times"),
        ([*RIGHT[:2], ("start", "b", 1), *RIGHT[3:]], "b began before a had ended"),
        ([*RIGHT, ("end", "other", 9)], "end of other: 1 times"),
    ],
)
def test_what_ran_twice_early_or_not_at_all_is_told(
    workflow: Workflow, effects: list[tuple[str, str, int]], fault: str
) -> None:
    assert found(workflow, effects) == [fault]
