"""The tests of unique tasks from Python, by an app whose store is a gateway."""

from app.test_unique import *  # noqa: F403
