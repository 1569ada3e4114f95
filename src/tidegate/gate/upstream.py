"""The proxies through which the gate itself goes out, from its own environment (GAT-8).

Rules of the file:

* HTTPS_PROXY is for tunnels, HTTP_PROXY for plain requests, ALL_PROXY for what has none of its own; lower case wins
  where both are set, as in curl. NO_PROXY lists what goes direct: names (with everything below them), addresses,
  CIDR blocks, each with an optional port, or `*`.
* Credentials are sent to that proxy only and appear in no text.
* What leads to this machine itself always goes direct (way.py): the proxy's loopback is another one.

What it does not do: proxies that are spoken to in TLS (`https://`), automatic configuration, SOCKS4.
"""

from __future__ import annotations

from _socket import AF_INET, AF_INET6, inet_pton

from tidegate.model.destination import Destination, PortError, parse_port, split_authority
from tidegate.model.errors import StartError
from tidegate.model.host import Host, HostError, canonical_host
from tidegate.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_PORTS = {"http": 80, "socks5": 1080, "socks5h": 1080}


class Proxy(Value):
    """One upstream proxy. `authorization` is the whole field value for `http`; user and password are for SOCKS5."""

    scheme: str
    host: Host
    port: int
    user: bytes = b""
    password: bytes = b""
    authorization: bytes = b""

    @property
    def plain(self) -> bool:
        """Whether it takes plain requests in absolute form."""
        return self.scheme == "http"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host.bracketed}:{self.port}"

    def __repr__(self) -> str:
        return f"Proxy({self})"


class UpstreamConfig(Value):
    """Which proxy serves what."""

    https: Proxy | None = None
    http: Proxy | None = None
    no_proxy: tuple[str, ...] = ()

    def route(self, destination: Destination, *, tunnel: bool) -> Proxy | None:
        """Return the proxy for a destination, None for the direct way."""
        proxy = self.https if tunnel else self.http
        if proxy is None or any(_excepts(entry, destination) for entry in self.no_proxy):
            return None
        return proxy


def upstream_from_environment(environ: Mapping[str, str]) -> UpstreamConfig | None:
    """Return what the variables say, None where they name no proxy.

    Raises:
        StartError: when a variable cannot be used as it is; going out another way would not be what was asked.
    """
    everything = _proxy(environ, "all_proxy")
    https = _proxy(environ, "https_proxy") or everything
    http = _proxy(environ, "http_proxy") or everything
    if https is None and http is None:
        return None
    listed = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    return UpstreamConfig(https, http, tuple(listed.replace(",", " ").lower().split()))


def _proxy(environ: Mapping[str, str], name: str) -> Proxy | None:
    for variable in (name, name.upper()):
        text = environ.get(variable, "").strip()
        if text:
            return parse_proxy(text, variable)
    return None


def parse_proxy(text: str, variable: str) -> Proxy:
    """Return the proxy that a URL names; `variable` is where it stands, for the message.

    Raises:
        StartError: when it is no proxy this gate can use. The message never shows user name or password.
    """
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest = "http", text
    scheme = scheme.lower()
    if scheme not in DEFAULT_PORTS:
        raise StartError(
            f"{variable} names a proxy of the kind {ascii(scheme)[:20]}",
            fix="use http://, socks5:// or socks5h://, or unset it",
            code="upstream",
        )
    userinfo, at, authority = rest.split("/", 1)[0].rpartition("@")
    try:
        host_text, port_text = split_authority(authority)
        host = canonical_host(host_text)
        port = DEFAULT_PORTS[scheme] if port_text is None else parse_port(port_text)
    except (HostError, PortError) as error:
        raise StartError(
            f"{variable} names no proxy: {error.what}", fix="write http://HOST:PORT, or unset it", code="upstream"
        ) from None
    if not at:
        return Proxy(scheme, host, port)
    user_text, _, password_text = userinfo.partition(":")
    user, password = _unquote(user_text), _unquote(password_text)
    authorization = b""
    if scheme == "http":
        from tidegate.wire.headers import basic_authorization

        authorization = basic_authorization(user, password)
    elif not (0 < len(user) < 256 and 0 < len(password) < 256):
        raise StartError(
            f"{variable} has no user name or no password for SOCKS5",
            fix="both are 1 to 255 bytes (RFC 1929)",
            code="upstream",
        )
    return Proxy(scheme, host, port, user, password, authorization)


def _unquote(text: str) -> bytes:
    # RFC 3986 section 2.1; what is no %XX stays as it is.
    first, *parts = text.encode("utf-8", "surrogateescape").split(b"%")
    for part in parts:
        try:
            first += bytes.fromhex(part[:2].decode("ascii")) + part[2:] if len(part) >= 2 else b"%" + part
        except ValueError:
            first += b"%" + part
    return first


def _excepts(entry: str, destination: Destination) -> bool:
    # An entry that cannot be read excepts nothing: the proxy is the stricter way.
    if entry == "*":
        return True
    host = destination.host
    entry_host, port = entry, ""
    if entry[:1] == "[":
        entry_host, _, port = entry[1:].partition("]")
        port = port[1:]
    elif entry.count(":") == 1:
        entry_host, _, port = entry.partition(":")
    if port and port != str(destination.port):
        return False
    if host.packed is not None:
        return _block_holds(entry_host, host.packed)
    suffix = entry_host.removeprefix("*").strip(".")
    return bool(suffix) and (host.text == suffix or host.text.endswith(f".{suffix}"))


def _block_holds(block: str, packed: bytes) -> bool:
    address, slash, bits_text = block.partition("/")
    try:
        network = inet_pton(AF_INET6 if ":" in address else AF_INET, address)
    except (OSError, ValueError):
        return False
    if len(network) != len(packed):
        return False
    bits = len(network) * 8
    if slash:
        if not (bits_text.isascii() and bits_text.isdigit() and int(bits_text) <= bits):
            return False
        shift = bits - int(bits_text)
    else:
        shift = 0
    return int.from_bytes(network, "big") >> shift == int.from_bytes(packed, "big") >> shift
