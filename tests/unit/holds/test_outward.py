"""Socket options that send past a fence: the numbers. That they are refused: test_seccomp, test_uid_filter."""

from __future__ import annotations

import socket

from tidegate.holds import outward


def test_the_numbers_are_the_kernels() -> None:
    """As the headers of this machine have them, as far as Python knows their names (HLD-13)."""
    assert socket.SO_BINDTODEVICE in outward.OPTIONS[socket.SOL_SOCKET]
    named = {socket.IP_OPTIONS, socket.IP_ADD_MEMBERSHIP}
    assert named <= set(outward.OPTIONS[socket.IPPROTO_IP])
    named = {socket.IPV6_JOIN_GROUP, socket.IPV6_PKTINFO, socket.IPV6_RTHDR, socket.IPV6_DSTOPTS}
    assert named <= set(outward.OPTIONS[socket.IPPROTO_IPV6])
