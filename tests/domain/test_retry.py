"""The arithmetic of backoff."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.domain.limits import SECOND_US
from perdure.domain.retry import BACKOFFS, Backoff, Retry
from perdure.errors import Invalid


def seconds(retry: Retry, failures: int, spread: float = 0.0) -> float:
    return retry.delay_us(failures, spread) / SECOND_US


def test_the_default_doubles_from_five_seconds_to_an_hour() -> None:
    retry = Retry()
    assert [seconds(retry, n) for n in range(1, 5)] == [5, 10, 20, 40]
    assert seconds(retry, 50) == 3600


def test_fixed_waits_the_same_and_linear_a_step_more_each_time() -> None:
    assert [seconds(Retry(backoff="fixed", base=7), n) for n in (1, 2, 9)] == [7, 7, 7]
    assert [seconds(Retry(backoff="linear", base=7), n) for n in (1, 2, 9)] == [7, 14, 63]


def test_the_cap_holds_before_the_jitter() -> None:
    retry = Retry(base=100, cap=150, jitter=0.5)
    assert seconds(retry, 5) == 150
    assert seconds(retry, 5, 1.0) == 225
    assert seconds(retry, 5, -1.0) == 75


def test_a_base_of_zero_waits_not_at_all() -> None:
    assert Retry(base=0).delay_us(3, 1.0) == 0


def test_a_thousand_failures_do_not_overflow() -> None:
    assert seconds(Retry(max_attempts=1000), 1000) == 3600


@given(
    backoff=st.sampled_from(BACKOFFS),
    base=st.floats(0, 86400),
    cap=st.floats(0, 86400),
    jitter=st.floats(0, 1),
    failures=st.integers(1, 1000),
    spread=st.floats(-1, 1),
)
def test_a_wait_is_never_negative_nor_past_the_spread_cap(
    backoff: Backoff, base: float, cap: float, jitter: float, failures: int, spread: float
) -> None:
    delay_us = Retry(1000, backoff, base, cap, jitter).delay_us(failures, spread)
    assert isinstance(delay_us, int)
    assert 0 <= delay_us <= round(cap * (1 + jitter) * SECOND_US) + 1


@given(failures=st.integers(1, 100), backoff=st.sampled_from(BACKOFFS))
def test_without_jitter_a_later_failure_never_waits_less(failures: int, backoff: Backoff) -> None:
    retry = Retry(backoff=backoff, jitter=0.0)
    assert retry.delay_us(failures, 0.0) <= retry.delay_us(failures + 1, 0.0)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"max_attempts": 0}, "max_attempts"),
        ({"max_attempts": 1001}, "max_attempts"),
        ({"max_attempts": True}, "max_attempts"),
        ({"max_attempts": 2.0}, "max_attempts"),
        ({"backoff": "quadratic"}, "backoff"),
        ({"base": -1}, "base"),
        ({"base": float("nan")}, "base"),
        ({"cap": float("inf")}, "cap"),
        ({"cap": "1"}, "cap"),
        ({"jitter": 1.5}, "jitter"),
        ({"jitter": None}, "jitter"),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(given: dict[str, object], field: str) -> None:
    with pytest.raises(Invalid) as caught:
        Retry(**given)  # type: ignore[arg-type]
    assert caught.value.fields["field"] == field
