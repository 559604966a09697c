"""The built-in kinds: ready to be added to any registry."""

from perdure.builtin.sleep import SLEEP_KIND, sleep

__all__ = ["SLEEP_KIND", "sleep"]
