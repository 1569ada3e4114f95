"""The messages of nfnetlink_log: packets that a rule turned away, with whose they were. Pure and strict.

Invariant: any bytes give a list of attempts or WireError. A message that is none of a packet, and a packet that is too
short for its own header, give none. The user is the kernel's word about the socket, not the packet's.

From linux/netfilter/nfnetlink_log.h; RFC 791, RFC 8200. What it does not do: extension headers of IPv6 are not walked,
a packet with some is of another protocol and has no port.
"""

from __future__ import annotations

from tidegate.wire import netlink
from tidegate.wire.attempt import NAMES, NOBODY, OTHER, PORTS, Attempt

NFNL_SUBSYS_ULOG = 4
NFULNL_MSG_PACKET = 0
NFULA_PAYLOAD, NFULA_PREFIX, NFULA_UID = 9, 10, 11

_PACKET = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET
_HEAD = 4  # struct nfgenmsg
_LONGEST_PREFIX = 128  # NF_LOG_PREFIXLEN


def attempts(data: bytes) -> list[Attempt]:
    """Return the packets that one datagram of the log tells of.

    Raises:
        WireError: when it is not framed as netlink is.
    """
    found = []
    for (kind, start, end), _sequence in netlink.messages(data):
        if kind != _PACKET:
            continue
        if end - start < _HEAD:
            raise netlink.malformed("a packet's message without a header")
        packet, prefix, uid = b"", "", NOBODY
        for attribute, begins, ends in netlink.attributes(data, start + _HEAD, end):
            if attribute == NFULA_PAYLOAD:
                packet = data[begins:ends]
            elif attribute == NFULA_PREFIX:
                prefix = data[begins : min(ends, begins + _LONGEST_PREFIX)].rstrip(b"\0").decode("latin-1")
            elif attribute == NFULA_UID:
                if ends - begins != 4:
                    raise netlink.malformed("a user of another size")
                uid = int.from_bytes(data[begins:ends], "big")
        attempt = _read(packet, uid, prefix)
        if attempt is not None:
            found.append(attempt)
    return found


def _read(packet: bytes, uid: int, prefix: str) -> Attempt | None:
    version = packet[0] >> 4 if packet else 0
    if version == 4 and len(packet) >= 20:
        number, address, behind = packet[9], packet[16:20], (packet[0] & 15) * 4
        if behind < 20:
            return None
        later = (packet[6] & 0x1F) << 8 | packet[7]  # a fragment's ports are in the first one
    elif version == 6 and len(packet) >= 40:
        number, address, behind, later = packet[6], packet[24:40], 40, 0
    else:
        return None
    protocol = NAMES.get(number, OTHER)
    port = 0
    if protocol in PORTS and not later and len(packet) >= behind + 4:
        port = packet[behind + 2] << 8 | packet[behind + 3]
    return Attempt(protocol, address, port, uid, prefix)
