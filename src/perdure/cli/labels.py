"""Labels as they are written on a command line."""

from perdure.errors import Malformed


def label(text: str) -> tuple[str, str]:
    """NAME=VALUE as a pair. Raises `Malformed`."""
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise Malformed(f"--label {text!r} is not NAME=VALUE", field="labels")
    return name, value
