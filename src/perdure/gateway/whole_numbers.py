"""Whole numbers that were written as `1.0`: JSON does not tell them from `1`, and some clients write all numbers so."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

FAULTS_MAX = 20
"""How many fields with such numbers are mended in one body; a body with more is refused."""

_FAULT = re.compile(r"Expected `int(?: \| null)?`, got `float` - at `\$([^`]*)`")
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")


def mended(data: bytes, fault: msgspec.ValidationError, decode: Callable[[bytes], Any]) -> Any:
    """The body with such numbers read as what they are. Raises the fault that is left, if one is."""
    value = msgspec.json.decode(data)
    for _ in range(FAULTS_MAX):
        if not _mend(value, str(fault)):
            raise fault
        try:
            return decode(msgspec.json.encode(value))
        except msgspec.ValidationError as next_fault:
            fault = next_fault
    raise fault


def _mend(value: Any, fault: str) -> bool:
    """Mend the numbers of the field that a fault names, in every item of the lists on the way to it. False where the
    fault names none that can be mended.
    """
    found = _FAULT.fullmatch(fault)
    if found is None:
        return False
    steps = [int(index) if index else name for name, index in _STEP.findall(found.group(1))]
    return bool(steps) and _mend_along(value, steps) > 0


def _mend_along(holder: Any, steps: Sequence[str | int]) -> int:
    """How many numbers were mended at the end of the steps; an index stands for all of its list."""
    step, rest = steps[0], steps[1:]
    if isinstance(step, int):
        places: Iterable[Any] = range(len(holder)) if isinstance(holder, list) else ()
    else:
        places = (step,) if isinstance(holder, dict) and step in holder else ()
    if rest:
        return sum(_mend_along(holder[place], rest) for place in places)
    mended = 0
    for place in places:
        number = holder[place]
        if isinstance(number, float) and number.is_integer():
            holder[place] = int(number)
            mended += 1
    return mended
