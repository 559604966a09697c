"""Texts cut to what may be stored."""

MARK = "... (cut)"


def shortened(text: str, max_bytes: int, keep_end: bool = False) -> str:
    """`text` as storable UTF-8 of at most `max_bytes`: half surrogates and NUL replaced, cut with a mark."""
    data = text.encode("utf-8", "replace").replace(b"\x00", b"?")
    if len(data) <= max_bytes:
        return data.decode()
    room = max_bytes - len(MARK) - 1
    if keep_end:
        return MARK + "\n" + data[-room:].decode("utf-8", "ignore")
    return data[:room].decode("utf-8", "ignore") + MARK
