r"""Lines of the kernel's own log about packets that a rule turned away, where there is no nfnetlink_log. Pure, strict.

    4,812,9120345,-;tidegate IN= OUT=eth0 SRC=10.0.0.2 DST=9.9.9.9 LEN=60 TOS=0x00 PREC=0x00 TTL=64 ID=0 DF
    PROTO=TCP SPT=40000 DPT=443 WINDOW=64240 RES=0x00 SYN URGP=0 UID=30001 GID=30001          (one line)

A task cannot write such a line: /dev/kmsg is not in its /dev, and what a program writes there is marked as a program's
(its facility is never 0, the kernel's own). The kernel quotes some texts of programs, such as the name of one that
crashed; they have 15 characters at most, control characters in them are escaped, and a line counts only where every
field is there once and in the kernel's order. So nothing that a task can make the kernel say is a line of another's.

Invariant: any bytes give an Attempt, None (a line that is not the rule's), or WireError.

From printk's Documentation/ABI/testing/dev-kmsg; net/netfilter/nf_log_syslog.c.
"""

from __future__ import annotations

from tidegate.model.reason import Reason
from tidegate.wire.attempt import ICMP, NOBODY, OTHER, PORTS, TCP, UDP, Attempt
from tidegate.wire.errors import WireError

_LONGEST = 1024  # bytes of a line; the kernel's own bound
_MOST_UID = 0xFFFFFFFF
_NAMES = {b"TCP": TCP, b"UDP": UDP, b"UDPLITE": OTHER, b"ICMP": ICMP, b"ICMPv6": ICMP}
_ALWAYS, _PORTS, _WHOSE = (b"SRC", b"DST", b"PROTO"), (b"SPT", b"DPT"), (b"UID", b"GID")
_ONCE = (*_ALWAYS, *_PORTS, *_WHOSE)
_ORDERS = (_ALWAYS, (*_ALWAYS, *_PORTS), (*_ALWAYS, *_WHOSE), _ONCE)


def attempt(record: bytes, prefix: bytes) -> Attempt | None:
    """Return what a record of /dev/kmsg tells, None where it is not a line with this prefix from the kernel itself.

    Raises:
        WireError: when a line with the prefix is not as the kernel writes it.
    """
    head, semicolon, rest = record.partition(b";")
    if not semicolon:
        raise _malformed("no record of the kernel's log")
    priority = _number(head.partition(b",")[0], 0xFFFF)
    line = rest.partition(b"\n")[0]
    if priority >> 3 or not line.startswith(prefix):
        return None  # a program's, or about something else
    if len(line) > _LONGEST:
        raise _malformed("a line that is too long")
    words = line[len(prefix) :].split(b" ")
    if words and not words[-1]:
        words.pop()  # the kernel ends the line with a blank
    if len(words) < 2 or not words[0].startswith(b"IN=") or not words[1].startswith(b"OUT="):
        raise _malformed("a line that does not begin as the kernel's do")
    return _read(words[2:])


def _read(words: list[bytes]) -> Attempt:
    found: dict[bytes, bytes] = {}
    for word in words:
        if word[:1] in (b"[", b"]"):
            raise _malformed("a packet inside a packet, or a part of one")
        name, equals, value = word.partition(b"=")
        if not equals or name not in _ONCE:
            continue
        if name in found:
            raise _malformed("a field that is there twice")
        found[name] = value
    if tuple(found) not in _ORDERS:
        raise _malformed("fields that are missing, or in another order")
    source, address = _address(found[b"SRC"]), _address(found[b"DST"])
    if len(source) != len(address):
        raise _malformed("addresses of two families")
    protocol = _NAMES.get(found[b"PROTO"], OTHER)
    port = 0
    if protocol in PORTS and b"DPT" in found:
        port = _number(found[b"DPT"], 65535)
    uid = _number(found[b"UID"], _MOST_UID) if b"UID" in found else NOBODY
    return Attempt(protocol, address, port, uid)


def _address(text: bytes) -> bytes:
    parts = text.split(b".")
    if len(parts) == 4:
        return bytes(_number(part, 255) for part in parts)
    parts = text.split(b":")
    if len(parts) != 8 or not all(len(part) == 4 for part in parts):
        raise _malformed("no address as the kernel writes it")
    try:
        return bytes.fromhex(text.replace(b":", b"").decode("ascii"))
    except ValueError:
        raise _malformed("no address as the kernel writes it") from None


def _number(text: bytes, most: int) -> int:
    if not text.isdigit() or len(text) > 10 or int(text) > most:
        raise _malformed("no number as the kernel writes it")
    return int(text)


def _malformed(detail: str) -> WireError:
    return WireError(Reason.UNKNOWN_PEER, detail)
