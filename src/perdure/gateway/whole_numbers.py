"""Whole numbers that were written as `1.0`: JSON does not tell them from `1`, and some clients write all numbers so."""

import re
from collections.abc import Callable
from typing import Any

import msgspec

FAULTS_MAX = 20
"""How many such numbers are mended in one body; a body with more is refused."""

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
    """Mend the one number that a fault names; false where it names none."""
    found = _FAULT.fullmatch(fault)
    if found is None:
        return False
    steps = [int(index) if index else name for name, index in _STEP.findall(found.group(1))]
    holder: Any = value
    try:
        for step in steps[:-1]:
            holder = holder[step]
        number = holder[steps[-1]]
        if not isinstance(number, float) or not number.is_integer():
            return False
        holder[steps[-1]] = int(number)
    except (KeyError, IndexError, TypeError):
        return False
    return True
