"""The rules of DAGs: what is sound, in which order it runs, and how a job ends."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.domain import job as rules
from perdure.domain import limits
from perdure.domain.job import (
    check_graph,
    check_names_differ,
    critical_path,
    depths,
    meaning_of_failure,
    topological,
)
from perdure.errors import Invalid


def names_at_fault(parents: dict[str, list[str]]) -> list[str]:
    with pytest.raises(Invalid) as caught:
        check_graph(parents)
    assert caught.value.fields["field"] == "tasks"
    names: list[str] = caught.value.fields.get("names", [])
    for name in names[: rules.SHOWN_NAMES]:
        assert name in caught.value.message
    return names


def test_a_diamond_is_sound() -> None:
    check_graph({"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]})


def test_a_circle_is_refused_with_its_names_in_order() -> None:
    cycle = names_at_fault({"start": [], "a": ["c", "start"], "b": ["a"], "c": ["b"], "behind": ["c"]})
    assert cycle[0] == cycle[-1]
    assert set(cycle) == {"a", "b", "c"}
    parents = {"a": "c", "b": "a", "c": "b"}
    assert all(parents[child] == parent for parent, child in itertools.pairwise(cycle))


def test_a_task_that_depends_on_itself_is_refused() -> None:
    assert names_at_fault({"a": ["a"]}) == ["a"]


def test_an_unknown_name_is_refused() -> None:
    assert names_at_fault({"a": ["gone"], "b": []}) == ["gone"]


def test_a_dependency_named_twice_is_refused() -> None:
    assert names_at_fault({"a": [], "b": ["a", "a"]}) == ["a"]


def test_two_tasks_of_one_name_are_refused() -> None:
    with pytest.raises(Invalid, match="'x'") as caught:
        check_names_differ(["x", "y", "x"])
    assert caught.value.fields["names"] == ["x"]
    check_names_differ(["x", "y"])


def test_an_empty_job_is_refused() -> None:
    assert names_at_fault({}) == []


@pytest.mark.parametrize(
    ("limit", "graph"),
    [
        ("JOB_MAX_TASKS", {"a": [], "b": [], "c": [], "d": []}),
        ("JOB_MAX_EDGES", {"a": [], "b": ["a"], "c": ["a", "b"], "d": ["a"]}),
        ("JOB_MAX_WIDTH", {"a": [], "b": ["a"], "c": ["a"], "d": ["a"], "e": ["a"]}),
        ("JOB_MAX_WIDTH", {"a": [], "b": [], "c": [], "d": [], "e": ["a", "b", "c", "d"]}),
        ("JOB_MAX_DEPTH", {"a": [], "b": ["a"], "c": ["b"], "d": ["c"]}),
    ],
)
def test_a_job_over_a_limit_is_refused(
    monkeypatch: pytest.MonkeyPatch, limit: str, graph: dict[str, list[str]]
) -> None:
    check_graph(graph)
    monkeypatch.setattr(limits, limit, 3)
    with pytest.raises(Invalid, match="3"):
        check_graph(graph)


def test_the_widest_and_deepest_allowed_jobs_are_checked_in_one_go() -> None:
    width = limits.JOB_MAX_WIDTH
    check_graph({"first": [], **{f"t{n}": ["first"] for n in range(width)}})
    check_graph({**{f"t{n}": [] for n in range(width)}, "last": [f"t{n}" for n in range(width)]})
    check_graph({f"t{n}": [f"t{n - 1}"] if n else [] for n in range(limits.JOB_MAX_DEPTH)})


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, list[str]]:
    size = draw(st.integers(1, 12))
    return {f"t{n}": [f"t{m}" for m in sorted(draw(st.sets(st.integers(0, n - 1))))] if n else [] for n in range(size)}


@given(graphs(), st.randoms())
def test_every_task_comes_after_what_it_depends_on(graph: dict[str, list[str]], chance: object) -> None:
    names = list(graph)
    chance.shuffle(names)  # type: ignore[attr-defined]
    shuffled = {name: graph[name] for name in names}
    order = topological(shuffled)
    assert sorted(order) == sorted(graph)
    place = {name: n for n, name in enumerate(order)}
    assert all(place[parent] < place[name] for name, above in graph.items() for parent in above)
    check_graph(shuffled)


@given(graphs())
def test_depth_is_the_length_of_the_critical_path_of_equal_weights(graph: dict[str, list[str]]) -> None:
    weight, path = critical_path(graph, dict.fromkeys(graph, 1.0))
    assert weight == len(path) == max(depths(graph, topological(graph)).values())
    assert all(parent in graph[child] for parent, child in itertools.pairwise(path))


def test_the_critical_path_is_the_heaviest() -> None:
    graph: dict[str, list[str]] = {"a": [], "b": [], "c": ["a", "b"], "d": ["c"], "e": ["a"]}
    assert critical_path(graph, {"a": 1, "b": 3, "c": 1, "d": 1, "e": 9}) == (10, ["a", "e"])
    assert critical_path(graph, {"a": 1, "b": 3, "c": 1, "d": 1, "e": 0}) == (5, ["b", "c", "d"])
    assert critical_path({}, {}) == (0.0, [])


@pytest.mark.parametrize(
    ("policy", "edges", "meaning"),
    [
        ("fail", [], "fail"),
        ("continue", [], "continue"),
        ("cancel_job", [], "cancel_job"),
        ("fail", ["continue"], "continue"),
        ("continue", ["fail"], "fail"),
        ("fail", ["fail", "continue"], "continue"),
        ("continue", ["continue", "cancel_job"], "cancel_job"),
    ],
)
def test_the_edges_of_a_task_say_what_its_failure_means(policy: str, edges: list[str], meaning: str) -> None:
    assert meaning_of_failure(policy, edges) == meaning  # type: ignore[arg-type]
