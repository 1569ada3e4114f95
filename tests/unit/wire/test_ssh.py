"""Proves that the disconnect message is a packet by RFC 4253 (GAT-9)."""

from __future__ import annotations

import struct

import pytest

from tidegate.wire.ssh import BANNER, ssh_disconnect


@pytest.mark.parametrize(
    "text", ["", "no rule allows it", "x" * 5000, "h\u00f6st", *("y" * size for size in range(1, 17))]
)
def test_the_packet_is_well_formed(text: str) -> None:
    """Length, padding of 4 to 11 bytes to a multiple of 8, message number, code, text and language."""
    packet = ssh_disconnect(text, banner=False)
    length, padding = struct.unpack(">IB", packet[:5])
    assert len(packet) == length + 4
    assert len(packet) % 8 == 0
    assert 4 <= padding <= 11
    payload = packet[5 : len(packet) - padding]
    kind, code, size = struct.unpack(">BII", payload[:9])
    assert (kind, code) == (1, 11)
    assert payload[9 : 9 + size] == text.encode("ascii", "backslashreplace")[:1024]
    assert payload[9 + size :] == bytes(4)


def test_the_banner_comes_first_where_the_server_has_not_spoken() -> None:
    """An identification line, then the packet."""
    assert ssh_disconnect("x", banner=True) == BANNER + ssh_disconnect("x", banner=False)
    assert BANNER.startswith(b"SSH-2.0-")
    assert BANNER.endswith(b"\r\n")
