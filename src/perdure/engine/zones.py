"""Time zones by name, from the zone database of the system, or else of the package `tzdata`."""

import zoneinfo
from bisect import bisect_right
from datetime import UTC, datetime, timedelta

from perdure.domain.timing import Period
from perdure.errors import Invalid

NAME_MAX_CHARS = 100
STEP_S = 86_400
"""No zone sets its clock twice within so long."""
PAGE_S = 64 * STEP_S
"""So much of a zone is looked at together."""
LOOK_BACK_S = 2 * STEP_S
PAGES_MAX = 10_000
"""How much of all zones is remembered."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class DatabaseZone:
    """Meets `domain.timing.Zone`."""

    def __init__(self, name: str, info: zoneinfo.ZoneInfo) -> None:
        self.name = name
        self._info = info
        self._pages: dict[int, list[tuple[int, int]]] = {}

    def period(self, instant_s: int) -> Period:
        """How the clock is set at an instant: from two days before its page, to the end of its page."""
        page = instant_s // PAGE_S
        changes = self._pages.get(page)
        if changes is None:
            if len(self._pages) >= PAGES_MAX:
                self._pages.clear()
            changes = self._pages[page] = self._changes(page * PAGE_S - LOOK_BACK_S, (page + 1) * PAGE_S)
        place = bisect_right(changes, instant_s, key=lambda change: change[0]) - 1
        start, offset = changes[place]
        end = changes[place + 1][0] if place + 1 < len(changes) else (page + 1) * PAGE_S
        return Period(start, end, offset, changes[place - 1][1] if place else offset)

    def offset(self, instant_s: int) -> int:
        """Seconds east of UTC at an instant."""
        offset = (_EPOCH + timedelta(seconds=instant_s)).astimezone(self._info).utcoffset()
        return int((offset or timedelta()).total_seconds())

    def _changes(self, start: int, end: int) -> list[tuple[int, int]]:
        """(instant, offset from then on) at the start and at each change until `end`."""
        offset = self.offset(start)
        changes = [(start, offset)]
        at = start
        while at < end:
            following = min(at + STEP_S, end)
            if self.offset(following) != offset:
                at, offset = self._change(at, following)
                if at < end:
                    changes.append((at, offset))
            else:
                at = following
        return changes

    def _change(self, low: int, high: int) -> tuple[int, int]:
        """The first instant after `low` with another offset; at `high` it is another one."""
        offset = self.offset(low)
        while high - low > 1:
            middle = (low + high) // 2
            if self.offset(middle) == offset:
                low = middle
            else:
                high = middle
        return high, self.offset(high)


class Zones:
    """The zones that were asked for. They are the same in every process with the same zone database."""

    def __init__(self) -> None:
        self._known: dict[str, DatabaseZone] = {}

    def __call__(self, name: object) -> DatabaseZone:
        """The zone of a name, such as `Europe/Berlin` or `UTC`. Raises `Invalid`."""
        if isinstance(name, str) and name in self._known:
            return self._known[name]
        if not isinstance(name, str) or not 1 <= len(name) <= NAME_MAX_CHARS:
            raise Invalid("time_zone must be the name of a zone, such as Europe/Berlin", field="time_zone")
        try:
            info = zoneinfo.ZoneInfo(name)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            raise Invalid(
                f"there is no time zone {name!r}: name one of the tz database, such as Europe/Berlin or UTC",
                field="time_zone",
            ) from None
        zone = self._known[name] = DatabaseZone(name, info)
        return zone
