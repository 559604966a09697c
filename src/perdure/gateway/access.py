"""Who acts, and whether they may: one place that every route goes through.

Keys come later. Until then there is one principal, and only this machine can be it: `check_listen` refuses every other
address.
"""

import ipaddress
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from perdure.engine.requests import Principal
from perdure.errors import Misuse, Refused

Scope = Mapping[str, Any]


class Forbidden(Refused):
    """The principal may not do this; `permission` names what it lacks."""

    code = "forbidden"
    status = 403


class Access(Protocol):
    """Tells who sent a request and what they may do."""

    def authenticate(self, scope: Scope) -> Principal:
        """Who sent it. Nothing in the body counts."""

    def authorize(self, principal: Principal, permission: str | None) -> None:
        """Raise `Forbidden` unless the principal has the permission."""


class LocalAccess:
    """Everybody on this machine is one principal, who may do everything."""

    def __init__(self, principal: Principal) -> None:
        self._principal = principal

    def authenticate(self, scope: Scope) -> Principal:
        """The one principal."""
        return self._principal

    def authorize(self, principal: Principal, permission: str | None) -> None:
        """Everything is granted."""


class Address(NamedTuple):
    """Where to listen. Port 0 lets the system choose."""

    host: str
    port: int


def parse_listen(text: str) -> Address:
    """`host:port`, `[::1]:port`. Raises `Misuse`."""
    host, separator, port = text.rpartition(":")
    if not separator or not port.isdigit() or int(port) > 65_535 or not host:
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
