"""Where a task wants to go: a canonical host and a port."""

from __future__ import annotations

from tidegate.model.host import Host, HostError, canonical_host
from tidegate.model.value import Value


class PortError(ValueError):
    """The text is no port. `what` is one clause that says why."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


class Destination(Value):
    """A canonical host and a port from 1 to 65535."""

    host: Host
    port: int

    def __str__(self) -> str:
        return f"{self.host.bracketed}:{self.port}"


def parse_port(text: str) -> int:
    """Return the port that `text` writes: one to five ASCII digits, no sign, no leading zero, 1-65535.

    Raises:
        PortError: for anything else (`+443`, `0443`, `99999`, full-width digits).
    """
    if not text:
        raise PortError("the port is missing")
    if not (text.isascii() and text.isdigit()):
        raise PortError(f"the port {ascii(text)[:40]} is not a plain number")
    if len(text) > 5 or int(text) > 65535 or text == "0":
        raise PortError(f"the port {text[:20]} is outside 1-65535")
    if text[0] == "0":
        raise PortError(f"the port {text} has a leading zero")
    return int(text)


def split_authority(raw: bytes | str) -> tuple[str, str | None]:
    """Split `host[:port]` into its two texts without judging either; the port is None when there is no colon.

    Raises:
        HostError: where the split itself is ambiguous: unbracketed IPv6, userinfo, bytes outside ASCII.
    """
    if isinstance(raw, bytes):
        try:
            text = raw.decode("ascii")
        except UnicodeDecodeError:
            raise HostError("it has bytes outside ASCII; send the A-label (xn--…) form") from None
    else:
        text = raw
    if "@" in text:
        raise HostError("it carries a user name ('@')")
    if text[:1] == "[":
        end = text.rfind("]")
        if end < 0:
            raise HostError("an IPv6 literal stands in exactly one pair of brackets")
        host, rest = text[: end + 1], text[end + 1 :]
        if not rest:
            return host, None
        if rest[0] != ":":
            raise HostError("after an IPv6 literal comes ':' and a port")
        return host, rest[1:]
    host, colon, port = text.partition(":")
    if ":" in port:
        raise HostError("an IPv6 literal needs brackets")
    return host, port if colon else None


def parse_authority(raw: bytes | str, default_port: int | None = None) -> Destination:
    """Return the destination that `host:port` names; `default_port` stands in for an absent port.

    Raises:
        HostError: when the host is malformed.
        PortError: when the port is malformed, or absent without a default.
    """
    host_text, port_text = split_authority(raw)
    host = canonical_host(host_text)
    if port_text is None:
        if default_port is None:
            raise PortError("the port is missing")
        return Destination(host, default_port)
    return Destination(host, parse_port(port_text))
