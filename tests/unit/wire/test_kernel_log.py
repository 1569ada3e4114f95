"""A line of the kernel's log is an attempt only as the kernel itself writes it (JRN-3)."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.wire.attempt import NOBODY, Attempt
from tidegate.wire.errors import WireError
from tidegate.wire.kernel_log import attempt

PREFIX = b"tidegate "
TCP = (
    b"4,395,1968269695,-;tidegate IN= OUT=lo SRC=127.0.0.1 DST=1.2.3.4 LEN=60 TOS=0x00 PREC=0x00 TTL=64 ID=12688 DF"
    b" PROTO=TCP SPT=38214 DPT=443 WINDOW=65495 RES=0x00 SYN URGP=0 UID=30001 GID=30001 \n"
)
UDP = (
    b"4,397,1969272168,-;tidegate IN= OUT=eth0 SRC=10.0.0.2 DST=9.9.9.9 LEN=29 TOS=0x00 PREC=0x00 TTL=64 ID=5036 DF"
    b" PROTO=UDP SPT=53480 DPT=53 LEN=9 UID=30002 GID=30002 MARK=0x1 \n SUBSYSTEM=x\n"
)
SIX = (
    b"4,398,1969272168,-;tidegate IN= OUT=lo SRC=0000:0000:0000:0000:0000:0000:0000:0001"
    b" DST=2600:beef:0000:0000:0000:0000:0000:0001 LEN=72 TC=0 HOPLIMIT=64 FLOWLBL=590000"
    b" PROTO=TCP SPT=1 DPT=22 WINDOW=65476 RES=0x00 SYN URGP=0 UID=39999 GID=39999 \n"
)
ICMP = TCP.partition(b" PROTO")[0] + b" PROTO=ICMP TYPE=8 CODE=0 ID=1 SEQ=1 UID=30001 GID=30001 \n"
FOUR = bytes((1, 2, 3, 4))


@pytest.mark.parametrize(
    ("record", "told"),
    [
        (TCP, Attempt("tcp", FOUR, 443, 30001)),
        (UDP, Attempt("udp", bytes((9, 9, 9, 9)), 53, 30002)),
        (SIX, Attempt("tcp", socket.inet_pton(socket.AF_INET6, "2600:beef::1"), 22, 39999)),
        (ICMP, Attempt("icmp", FOUR, 0, 30001)),
        (TCP.replace(b" UID=30001 GID=30001", b""), Attempt("tcp", FOUR, 443, NOBODY)),
        (ICMP.replace(b"PROTO=ICMP TYPE=8 CODE=0 ID=1 SEQ=1", b"PROTO=132"), Attempt("other", FOUR, 0, 30001)),
    ],
)
def test_the_kernels_lines_are_read(record: bytes, told: Attempt) -> None:
    """JRN-3: as a kernel wrote them; without a user it is nobody's."""
    assert attempt(record, PREFIX) == told


@pytest.mark.parametrize(
    "record",
    [
        b"12," + TCP.partition(b",")[2],  # facility 1: a program wrote it into /dev/kmsg
        b"8," + TCP.partition(b",")[2],
        b"30," + TCP.partition(b",")[2],
        TCP.replace(b";tidegate ", b";other "),
        TCP.replace(b";", b";x ", 1),
        b"6,1,2,-;usb 1-1: new device\n",
        b"6,1,2,-;sh[77]: segfault\\x0atidegate IN= OUT=lo SRC=1.1.1.1 DST=1.1.1.1 PROTO=TCP UID=30002 GID=1\n",
    ],
)
def test_other_lines_are_none(record: bytes) -> None:
    """JRN-3: what a program writes is marked as a program's; the prefix counts at the beginning only."""
    assert attempt(record, PREFIX) is None


@pytest.mark.parametrize(
    "record",
    [
        # The name of a program that crashed may be the prefix and more.
        b"6,1,2,-;tidegate IN= O[77]: segfault at 0 ip 0 sp 0 error 4\n",
        b"6,1,2,-;tidegate IN=[77]: segfault at 0\n",
        TCP.replace(b"UID=30001", b"UID=30001 UID=30002"),
        TCP.replace(b"DPT=443", b"DPT=443 DPT=80"),
        TCP.replace(b"DST=1.2.3.4", b""),
        TCP.replace(b"DST=1.2.3.4", b"DST=1.2.3"),
        TCP.replace(b"DST=1.2.3.4", b"DST=1.2.3.256"),
        TCP.replace(b"DST=1.2.3.4", b"DST=1.2.3.+4"),
        TCP.replace(b"DST=1.2.3.4", b"DST=2600:beef:0000:0000:0000:0000:0000:0001"),
        SIX.replace(b"2600:beef:", b"2600:bee:"),
        SIX.replace(b"2600:beef:", b"2600:beeg:"),
        TCP.replace(b"DPT=443", b"DPT=65536"),
        TCP.replace(b"DPT=443", b"DPT="),
        TCP.replace(b"UID=30001", b"UID=4294967296"),
        TCP.replace(b"UID=30001", b"UID=-1"),
        TCP.replace(b" UID=30001 GID=30001", b"").replace(b"SRC=", b"UID=1 GID=1 SRC="),
        TCP.replace(b"UID=30001 GID=30001", b"UID=30001"),
        TCP.replace(b"PROTO=TCP", b"PROTO=TCP INCOMPLETE [8 bytes]"),
        ICMP.replace(b"SEQ=1", b"[SRC=1.1.1.1 DST=2.2.2.2 ]"),
        TCP.replace(b"tidegate IN=", b"tidegate xIN="),
        TCP.replace(b"SYN", b"S" * 1024),
        TCP.replace(b";", b"", 1).replace(b";", b""),
        b"x" + TCP,
        b"",
    ],
)
def test_what_is_not_as_the_kernel_writes_it_is_an_error(record: bytes) -> None:
    """JRN-3: a field twice, missing, out of order or not a number; what a task might make the kernel say."""
    with pytest.raises(WireError):
        attempt(record, PREFIX)


@given(st.binary(max_size=200), st.sampled_from((b"", b"4,1,2,-;", b"4,1,2,-;tidegate IN= OUT=", TCP[:-40])))
def test_any_bytes_are_an_attempt_none_or_an_error(data: bytes, before: bytes) -> None:
    """Invariant: an address of one of two sizes, a port, a user."""
    try:
        told = attempt(before + data, PREFIX)
    except WireError:
        return
    if told is not None:
        assert len(told.address) in (4, 16)
        assert 0 <= told.port <= 65535
        assert -1 <= told.uid <= 0xFFFFFFFF
