"""Labels as they are written on a command line."""

from collections.abc import Sequence


def label_pairs(texts: Sequence[str] | None) -> tuple[tuple[str, str], ...]:
    """What `--label NAME=VALUE` said, as pairs. Raises `Malformed`."""
    from perdure.engine.names import label_pair

    return tuple(label_pair(each, "--label") for each in texts or ())
