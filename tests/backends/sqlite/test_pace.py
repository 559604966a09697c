"""When commits are quick enough for an event loop to do them itself."""

from perdure.store.sqlite.pace import QUICK_US, SLOW_FOR_US, Pace


class Hands:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.us = 0

    def now_us(self) -> int:
        """The time that was set."""
        return self.us


def test_one_slow_commit_says_little_and_several_in_a_row_do():
    pace = Pace(Hands().now_us)
    pace.note(50 * QUICK_US)
    assert pace.quick
    for _ in range(5):
        pace.note(50 * QUICK_US)
    assert not pace.quick


def test_while_it_is_slow_one_is_tried_now_and_then_and_a_quick_one_ends_that():
    hands = Hands()
    pace = Pace(hands.now_us)
    for _ in range(10):
        pace.note(5 * QUICK_US)
    assert not pace.quick
    hands.us += SLOW_FOR_US
    assert pace.quick
    pace.note(2 * QUICK_US)
    assert not pace.quick
    hands.us += SLOW_FOR_US
    pace.note(QUICK_US / 10)
    assert pace.quick
