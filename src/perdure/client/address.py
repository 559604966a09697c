"""Where a gateway is: the URL that a program gives, checked before anything is sent."""

from urllib.parse import urlsplit

from perdure.errors import Misuse

SCHEMES = ("http", "https")


def is_gateway(store: str) -> bool:
    """Whether a store's name is the URL of a gateway."""
    return store.partition("://")[0].lower() in SCHEMES


def gateway_url(store: str) -> str:
    """The URL in its one form, without a slash at its end. Raises `Misuse` for what cannot be a gateway's."""
    parts = urlsplit(store)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if parts.scheme.lower() not in SCHEMES or not host:
        raise Misuse(f"{store!r} is no gateway's URL: write http://host:port or https://host", store=store)
    if parts.username is not None or parts.query or parts.fragment:
        raise Misuse("the URL of a gateway has no user, query or fragment: write http://host:port", store=host)
    shown = f"[{host}]" if ":" in host else host
    place = shown if port is None else f"{shown}:{port}"
    return f"{parts.scheme.lower()}://{place}{parts.path.rstrip('/')}"
