"""While a process serves, what was loaded is not looked through again, and threads change hands quickly."""

import gc
import sys
import weakref

from perdure.gateway.short_pauses import SWITCH_SECONDS, short_pauses


class Ring:
    """Garbage that only the collector finds."""

    def __init__(self) -> None:
        self.itself = self


def test_what_was_there_is_not_looked_through_and_what_comes_later_is_collected():
    before = (gc.get_threshold(), sys.getswitchinterval())
    with short_pauses():
        assert gc.get_freeze_count() > len(gc.get_objects())
        assert sys.getswitchinterval() <= SWITCH_SECONDS * 1.01
        later = weakref.ref(Ring())
        gc.collect()
        assert later() is None
    assert (gc.get_threshold(), sys.getswitchinterval()) == before
    assert gc.get_freeze_count() == 0


def test_what_became_garbage_meanwhile_is_collected_afterwards():
    ring = Ring()
    was = weakref.ref(ring)
    with short_pauses():
        del ring
        gc.collect()
    gc.collect()
    assert was() is None
