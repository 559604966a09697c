"""How many connections the system lets this process hold: each takes a file, beside those of the store and its own."""

import contextlib
import resource

BESIDE = 200
"""Files for everything else: the store, the log, the listener, libraries."""


def room_for(connections: int) -> int:
    """Ask the system for enough files, and say for how many connections there is room: at most as many as asked."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + BESIDE
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return connections
    granted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (granted, hard))
        soft = granted
    return max(1, min(connections, soft - BESIDE))
