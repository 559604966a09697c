"""What a process that serves does, so that no request waits long for the interpreter's own housekeeping.

The garbage collector looks at all objects there are once a quarter of them is new: with all of perdure loaded that held
every request up for 30 ms, many times a second beside a client that sends long lists. What is there when serving begins
stays, so it is not looked at again; of what comes later, the old is looked at when much has come.

A thread that computes lets another one go on after 5 ms, unless told otherwise: a commit of the writer's thread has a
dozen places at which it waits for the event loop so long, and the other way round.
"""

import contextlib
import gc
import sys
from collections.abc import Iterator

YOUNG_OBJECTS = 5_000
"""So many more objects than were freed, and the young ones are looked at."""
MIDDLE_IN_OLD = 50
"""So many times the middle-aged are looked at before the old are: at two and a half million objects more."""
SWITCH_SECONDS = 0.001


@contextlib.contextmanager
def short_pauses() -> Iterator[None]:
    """Hold this for as long as the process serves. Begin once everything is loaded."""
    thresholds, switch = gc.get_threshold(), sys.getswitchinterval()
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, thresholds[1] or 10, MIDDLE_IN_OLD)
    sys.setswitchinterval(min(switch, SWITCH_SECONDS))
    try:
        yield
    finally:
        sys.setswitchinterval(switch)
        gc.set_threshold(*thresholds)
        gc.unfreeze()
