"""Who acts, and whether they may: one place that every route goes through.

Keys come later. Until then there is one principal, and only this machine can be it: `check_listen` refuses every other
address.
"""

import ipaddress
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from perdure.engine.requests import Principal
from perdure.errors import Misuse, Refused

Scope = Mapping[str, Any]

_LOCAL_CLIENTS = frozenset({"127.0.0.1", "::1"})


class Forbidden(Refused):
    """The principal may not do this; `permission` names what it lacks."""

    code = "forbidden"
    status = 403


class Access(Protocol):
    """Tells who sent a request and what they may do."""

    def authenticate(self, scope: Scope) -> Principal:
        """Who sent it. Nothing in the body counts."""

    def client(self, scope: Scope, principal: Principal) -> str:
        """Who counts as one client, when clients take turns: nobody gets more by sending more."""

    def authorize(self, principal: Principal, permission: str | None) -> None:
        """Raise `Forbidden` unless the principal has the permission."""


CLIENT_HEADER = b"perdure-client"
"""By this a program says that its connections are one client. Who does not say it gains nothing: each then is one."""
CLIENT_MAX_BYTES = 64


class LocalAccess:
    """Everybody on this machine is one principal, who may do everything; nobody else may do anything.

    A browser on this machine acts for pages from anywhere: what it sends for another site is refused, and so is a
    request to a host name that is not this machine's (a name that was made to point here).
    """

    def __init__(self, principal: Principal) -> None:
        self._principal = principal

    def authenticate(self, scope: Scope) -> Principal:
        """The one principal. Raises `Forbidden` for what comes from elsewhere."""
        client = scope.get("client")
        if client is not None and client[0] not in _LOCAL_CLIENTS and not is_loopback(client[0]):
            raise Forbidden("without keys, only this machine is served")
        for name, value in scope["headers"]:
            if name == b"host" and not _is_local_host(value):
                raise Forbidden("without keys, only requests to localhost are served", field="Host")
            if name == b"sec-fetch-site" and value not in (b"same-origin", b"none"):
                raise Forbidden("this request was made for a page of another site", field="Sec-Fetch-Site")
            if name == b"origin" and not _is_local_host(value.rpartition(b"//")[2]):
                raise Forbidden("this request was made for a page of another site", field="Origin")
        return self._principal

    def client(self, scope: Scope, principal: Principal) -> str:
        """The program, where it names itself, and else the connection: all of this machine are one principal."""
        for name, value in scope["headers"]:
            if name == CLIENT_HEADER:
                return str(value[:CLIENT_MAX_BYTES], "latin-1")
        client = scope.get("client")
        return "" if client is None else f"{client[0]}:{client[1]}"

    def authorize(self, principal: Principal, permission: str | None) -> None:
        """Everything is granted."""


_PORT = re.compile(r"[0-9]{1,5}")


class Address(NamedTuple):
    """Where to listen. Port 0 lets the system choose."""

    host: str
    port: int


def parse_listen(text: str) -> Address:
    """`host:port`, `[::1]:port`. Raises `Misuse`."""
    host, separator, port = text.rpartition(":")
    if not separator or not _PORT.fullmatch(port) or int(port) > 65_535 or not host:
        raise Misuse(f"{text!r} is no address to listen at: write host:port, as 127.0.0.1:7373")
    return Address(host.removeprefix("[").removesuffix("]"), int(port))


def check_listen(address: Address) -> None:
    """Refuse to listen where others than this machine could reach it. Raises `Misuse`."""
    if not is_loopback(address.host):
        raise Misuse(
            f"{address.host} can be reached from other machines, and this version has no authentication: listen at"
            " 127.0.0.1 or [::1], and put what authenticates in front of it",
            listen=f"{address.host}:{address.port}",
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host's address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_local_host(value: bytes) -> bool:
    """Whether a `Host`, with or without port, names this machine."""
    if value.startswith((b"127.0.0.1", b"localhost")) and value.partition(b":")[0] in (b"127.0.0.1", b"localhost"):
        return True
    host = value.decode("latin-1").lower()
    host = host[1:].partition("]")[0] if host.startswith("[") else host.rpartition(":")[0] or host
    return is_loopback(host)
