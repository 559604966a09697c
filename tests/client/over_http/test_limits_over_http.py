"""The tests of limits, gates and pauses from Python, by an app whose store is a gateway."""

from app.test_limits import *  # noqa: F403
