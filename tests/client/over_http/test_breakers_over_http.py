"""The tests of breakers and pauses from Python, by an app whose store is a gateway."""

from app.test_breakers import *  # noqa: F403
