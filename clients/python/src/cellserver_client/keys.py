"""Keys of requests: the address, the user, a header, and combinations of them.

A key function takes the request of the framework (Starlette, Django or WSGI) and returns a text, or None for a request
that is not limited.
"""

from __future__ import annotations

import hashlib
import ipaddress
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from .errors import ConfigurationError, KeyFault

Key = Callable[[Any], "str | None"]
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

MAX_KEY_BYTES = 128
"""The length beyond which a key is replaced by its hash."""

UNKNOWN = "unknown"
"""The key of all clients whose address neither the peer nor the header tells."""

_log = logging.getLogger("cellserver_client")
_warned = False


def hashed(text: str) -> str:
    """The first 16 bytes of SHA-256 in hexadecimal: what the server sees of a secret or long key."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def encodable(text: str) -> str:
    """The text itself, or its hash if it is none of UTF-8, since it has surrogates.

    Clients send such texts, in JSON for example, and an error would be a way round the limit.
    """
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return hashed(text)
    return text


def bounded(text: str) -> str:
    """The key itself, or its hash if it has over 128 bytes or is not encodable."""
    text = encodable(text)
    if len(text) * 4 <= MAX_KEY_BYTES or len(text.encode()) <= MAX_KEY_BYTES:
        return text
    return hashed(text)


def peer_of(request: Any) -> str | None:
    """The address of the peer of a request of Starlette, Django or WSGI."""
    scope = getattr(request, "scope", request)
    if isinstance(scope, dict) and "type" in scope:
        client = scope.get("client")
        return client[0] or None if client else None
    return _environ(request).get("REMOTE_ADDR") or None


def header_lines(request: Any, name: str) -> list[str]:
    """The lines of a header field in their order. name is lower case."""
    scope = getattr(request, "scope", request)
    if isinstance(scope, dict) and "type" in scope:
        wanted = name.encode("latin-1")
        return [value.decode("latin-1") for key, value in scope["headers"] if key == wanted]
    value = _environ(request).get("HTTP_" + name.upper().replace("-", "_"))
    return [value] if value is not None else []


def _environ(request: Any) -> dict[str, Any]:
    for name in ("META", "environ"):
        found = getattr(request, name, None)
        if isinstance(found, dict):
            return found
    raise KeyFault(f"no address can be read from a {type(request).__name__}: write a key function of your own")


def parse_address(text: str) -> Address | None:
    """An address without port, brackets and zone; IPv4 for an IPv4-mapped one. None for anything else."""
    if text.startswith("["):
        text, closing, port = text[1:].partition("]")
        if not closing or ":" not in text or (port and not _is_port(port)):
            return None
    elif text.count(":") == 1:
        text, _, port = text.partition(":")
        if not _is_port(":" + port):
            return None
    text, percent, zone = text.partition("%")
    if percent and (not zone or ":" not in text):
        return None
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        return address.ipv4_mapped
    return address


def _is_port(text: str) -> bool:
    digits = text[1:]
    if not text.startswith(":") or not digits.isascii() or not digits.isdigit():
        return False
    digits = digits.lstrip("0") or "0"
    return len(digits) < 6 and int(digits) < 65536


def client_address(
    peer: str, forwarded: Sequence[str], *, trusted_hops: int = 0, trusted_networks: Sequence[Network] = ()
) -> Address | None:
    """The address of the client, from the peer's and the lines of X-Forwarded-For.

    None if the peer has no address and the header names none either. Raises KeyFault for such a peer without hops.
    """
    own = parse_address(peer)
    if own is None and not trusted_hops:
        raise KeyFault("the peer of a request has no address: a Unix socket needs ip(trusted_hops=1)")
    if trusted_hops:
        entries = _backward(forwarded)
        entry = next((e for i, e in enumerate(entries, 1) if i == trusted_hops), None)
        return (parse_address(entry) if entry is not None else None) or own
    if trusted_networks and own is not None and _within(own, trusted_networks):
        return _beyond(own, forwarded, trusted_networks)
    return own


def _backward(lines: Sequence[str]) -> Iterator[str]:
    """The entries of all lines from the last one on. The header is as long as a client likes: no more is split than needed."""
    for line in reversed(lines):
        comma = ","
        while comma:
            line, comma, entry = line.rpartition(",")
            yield entry.strip(" \t")


def _beyond(own: Address, forwarded: Sequence[str], trusted: Sequence[Network]) -> Address:
    """The first address from the right that is not trusted, or else the leftmost."""
    client = own
    for entry in _backward(forwarded):
        address = parse_address(entry)
        if address is None:
            return own
        client = address
        if not _within(client, trusted):
            break
    return client


def _within(address: Address, networks: Sequence[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)


def address_key(address: Address, v6_prefix: int = 64) -> str:
    """The key of an address: IPv4 as it is, IPv6 as its network."""
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.IPv6Network((int(address), v6_prefix), strict=False))
    return str(address)


def ip(*, trusted_hops: int = 0, trusted_networks: Iterable[str] = (), v6_prefix: int = 64) -> Key:
    """The client's address.

    trusted_hops is the number of proxies of yours that append to X-Forwarded-For. trusted_networks are their
    networks instead. Without either, the header is never believed, and the first request that has one is a warning
    in the log. Leave both out where the server resolves the address already (uvicorn --proxy-headers). v6_prefix
    is the number of bits, 48 to 64, that one user has of an IPv6 address. Raises ConfigurationError.
    """
    try:
        networks = [ipaddress.ip_network(text, strict=False) for text in trusted_networks]
    except ValueError as error:
        raise ConfigurationError(f"trusted_networks: {error}") from None
    if trusted_hops < 0 or (trusted_hops and networks):
        raise ConfigurationError("trusted_hops is 1 or more, and excludes trusted_networks")
    if not 48 <= v6_prefix <= 64:
        raise ConfigurationError(f"v6_prefix is 48 to 64, not {v6_prefix}")
    trusting = bool(trusted_hops or networks)

    def key(request: Any) -> str | None:
        peer, lines = peer_of(request), header_lines(request, "x-forwarded-for")
        if lines and not trusting:
            _warn()
        address = client_address(peer or "", lines, trusted_hops=trusted_hops, trusted_networks=networks)
        if address is None:
            return UNKNOWN
        return address_key(address, v6_prefix)

    return key


def _warn() -> None:
    global _warned
    if not _warned:
        _warned = True
        _log.warning(
            "a request has X-Forwarded-For, which ip() does not believe: if there is a proxy, all its clients share one key. "
            "Set trusted_hops or trusted_networks"
        )


def user(request: Any) -> str | None:
    """The user of the request: its identity in Starlette, its primary key in Django. None without a signed-in user."""
    scope = getattr(request, "scope", request)
    # A request of Django has a scope under ASGI, and its user beside it.
    of_starlette = isinstance(scope, dict) and "type" in scope and not hasattr(request, "META")
    found = scope.get("user") if of_starlette else getattr(request, "user", None)
    if found is None or not getattr(found, "is_authenticated", False):
        return None
    for name in ("pk", "identity"):
        value = getattr(found, name, None)
        if value is not None:
            return bounded(f"user:{value}")
    raise KeyFault(f"a {type(found).__name__} has neither pk nor identity: write a key function of your own")


def header(name: str, *, secret: bool = True) -> Key:
    """The value of a header field, on its first line. Without the field the request is not limited: see first.

    Applications read the first line, too: further lines of a client would make new keys for the same token.
    secret replaces the value by its hash, so that a token is in no list of keys and in no log.
    """
    wanted = name.lower()

    def key(request: Any) -> str | None:
        lines = header_lines(request, wanted)
        if not lines:
            return None
        return hashed(lines[0]) if secret else bounded(lines[0])

    return key


def joined(parts: Iterable[str]) -> str:
    """Parts separated by "|". No two lists of parts are joined to the same text."""
    return "|".join(part.replace("%", "%25").replace("|", "%7C") for part in parts)


def combine(*keys: Key) -> Key:
    """All of several keys, joined by "|". None if one of them is None."""

    def key(request: Any) -> str | None:
        parts = []
        for each in keys:
            part = each(request)
            if part is None:
                return None
            parts.append(part)
        return bounded(joined(parts))

    return key


def first(*keys: Key) -> Key:
    """The first of several keys that is not None: first(user, ip()) limits anonymous requests by address."""

    def key(request: Any) -> str | None:
        for each in keys:
            found = each(request)
            if found is not None:
                return found
        return None

    return key
