"""Random lives: whatever is done in whatever order, each store does what the model does, and its rows agree."""

import os
import random
from collections import Counter
from collections.abc import Sequence
from typing import ClassVar, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from conformance.lives import WEIGHTED, Life
from conformance.stores import STORES
from perdure.domain.states import TaskState
from perdure.domain.transitions import TABLE, Event

T = TypeVar("T")
LIVES = int(os.environ.get("PERDURE_TEST_LIVES", "40"))
"""How many lives each quick test leads."""


class Lives(RuleBasedStateMachine):
    """A life led by Hypothesis, which shortens those that go wrong."""

    store_name: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.life = Life(self.store_name)

    def teardown(self) -> None:
        self.life.end()

    @rule(verb=st.sampled_from(WEIGHTED), data=st.data())
    def live(self, verb: str, data: st.DataObject) -> None:
        def choose(possibilities: Sequence[T]) -> T:
            return data.draw(st.sampled_from(possibilities))

        getattr(self.life, verb)(choose)

    @invariant()
    def as_in_the_model(self) -> None:
        self.life.check()


def explore(store: str, examples: int, steps: int) -> None:
    """Let Hypothesis lead that many lives."""
    run_state_machine_as_test(
        type(f"Lives_{store}", (Lives,), {"store_name": store}),
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )


def lead(store: str, seed: int, steps: int) -> Counter[tuple[TaskState | None, Event]]:
    """Lead the life of one seed; which moves it made, and how often."""
    chance = random.Random(seed)
    life = Life(store)
    done: list[str] = []
    try:
        for _ in range(steps):
            done.append(chance.choice(WEIGHTED))
            getattr(life, done[-1])(chance.choice)
            life.check()
    except Exception as error:
        raise AssertionError(f"seed {seed} went wrong at step {len(done)}: {done[-1]}: {error}") from error
    finally:
        life.end()
    return life.model.reached


MADE_ELSEWHERE = {(TaskState.EXPIRED, Event.REVIVE)}
"""Made by the retry of a job only, which lives do not do: `test_job_retries.py` makes it."""


def lead_many(store: str, seeds: range, steps: int) -> None:
    """Lead the lives of many seeds; together they must make every move that the lifecycle has."""
    reached: Counter[tuple[TaskState | None, Event]] = Counter()
    for seed in seeds:
        reached += lead(store, seed, steps)
    moves = {(source, row.event) for row in TABLE for source in row.sources} - MADE_ELSEWHERE
    for source, event in sorted(moves, key=str):
        print(f"{reached[source, event]:7} {source or 'nothing'} {event}")
    missing = sorted(f"{source} {event}" for source, event in moves if not reached[source, event])
    assert not missing, f"never made: {missing}"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("store", sorted(STORES))
def test_random_lives_are_as_in_the_model(store: str) -> None:
    explore(store, LIVES, 40)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("store", sorted(STORES))
def test_the_lives_of_known_seeds_are_as_in_the_model_and_make_every_move(store: str) -> None:
    lead_many(store, range(LIVES), 100)


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("store", sorted(STORES))
def test_many_long_lives_are_as_in_the_model(store: str) -> None:
    explore(store, 500, 80)
    lead_many(store, range(1_000_000, 1_003_000), 100)
