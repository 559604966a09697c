"""Bodies on their way into and out of JSON documents: JSON as itself, anything else as hexadecimal text."""

from base64 import b64decode

from perdure.domain.task import Body


def from_columns(text: str | None, encoding: str | None) -> Body | None:
    """The body that a statement read, or `None` when there is none."""
    if text is None or encoding is None:
        return None
    if encoding == "json":
        return Body(text.encode(), encoding)
    return Body(bytes.fromhex(text), encoding)


def text_of(body: Body) -> str:
    """The text that a statement writes with `unhex` or as JSON."""
    return body.data.decode() if body.encoding == "json" else body.data.hex()


def hex_of_base64(text: str) -> str:
    """A specification's payload of an encoding other than JSON, as statements take it."""
    return b64decode(text).hex()
