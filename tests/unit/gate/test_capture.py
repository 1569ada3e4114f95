"""Proves the life of a capture: handed over, shared by a task's commands, removed and cut (HLD-6, HLD-7)."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from tests.descriptors import descriptors
from tests.unit.gate.captive import Captive
from tests.unit.gate.kit import Serving, policy_of, read_exactly, wait
from tidegate.gate.capture import CaptureSockets
from tidegate.gate.gate import GateTask
from tidegate.gate.original import ADDRESSED
from tidegate.gate.synthetic import DEFAULT_RANGES, Ranges, range_of
from tidegate.model.reason import Reason
from tidegate.model.verdict import How

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.api import Lab

    Capturing = Callable[..., tuple[Serving, Captive]]
    Serve = Callable[..., Serving]


def test_removing_a_capture_closes_it_and_cuts_what_is_open(lab: Lab, capture: Capturing) -> None:
    """The resolver and the listeners are gone at once, the connections with `cut`, recorded as ended by the gate."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("raw", "1.2.3.4", 443)
    gate, captive = capture("a.test:443")
    with captive.connect("a.test", 443) as sock:
        sock.sendall(b"\x00")
        assert read_exactly(sock, 1) == b"\x00"
        gate.on_thread(lambda: gate.gate.remove_capture(captive.handle, cut=False))
        with pytest.raises(ConnectionRefusedError):
            captive.look_up("a.test")
        with pytest.raises(ConnectionRefusedError):
            captive.connect("198.18.1.1", 443)
        sock.sendall(b"\x01")
        assert read_exactly(sock, 1) == b"\x01"
        gate.on_thread(lambda: gate.gate.remove_capture(captive.handle, cut=True))
        assert sock.recv(1) == b""
    assert (gate.event().reason, gate.event().how) == (Reason.STOPPING, How.CAPTURED)


def test_the_end_of_the_gate_ends_captures(lab: Lab) -> None:
    """HLD-7: tunnels, refused clients, a stream of the resolver; no descriptor is left."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("raw", "1.2.3.4", 443)
    with Captive(ipv6=lab.ipv6) as captive:
        before = descriptors()
        gate = Serving(policy_of("a.test:443"))
        sockets = CaptureSockets(**captive.sockets())
        gate.on_thread(lambda: gate.gate.add_capture(sockets, gate.task))
        open_ = captive.connect("a.test", 443)
        open_.sendall(b"\x00")
        assert read_exactly(open_, 1) == b"\x00"
        refused = captive.connect("1.2.3.4", 5432)
        stream = captive.socket()
        stream.connect(("127.0.0.1", 53))
        wait(lambda: gate.gate.connections == 2)
        gate.stop()
        for sock in (open_, refused, stream):
            sock.close()
        assert descriptors() <= before


def test_the_commands_of_a_task_share_its_names(lab: Lab, capture: Capturing) -> None:
    """HLD-6: a second capture of the same task knows the addresses of the first; another task has its own."""
    gate, first = capture("a.test", "b.test")
    assert first.look_up("a.test") == "198.18.1.1"
    other = GateTask("t2", policy_of("a.test", "b.test"))
    with Captive(ipv6=lab.ipv6) as second, Captive(ipv6=lab.ipv6) as third:
        sockets = CaptureSockets(**second.sockets())
        gate.on_thread(lambda: gate.gate.add_capture(sockets, gate.task))
        more = CaptureSockets(**third.sockets())
        gate.on_thread(lambda: gate.gate.add_capture(more, other))
        assert second.look_up("b.test") == "198.18.1.2"
        assert second.look_up("a.test") == "198.18.1.1"
        assert third.look_up("b.test") == "198.18.1.1"
        with third.connect("198.18.1.2", 80) as sock:
            sock.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert b"address-not-issued" in sock.recv(1000)
    assert gate.event().task == "t2"


def test_options_reach_the_resolver(capture: Capturing) -> None:
    """HLD-6: another range, a bound of names, the task's own names, no IPv6."""
    ranges = Ranges(range_of("10.66.0.0/16"), DEFAULT_RANGES.ipv6)
    _, captive = capture("*", ranges=ranges, most_names=1, own_names=frozenset({"box"}), ipv6=False)
    assert captive.look_up("a.test") == "10.66.1.1"
    assert captive.look_up("box") == "127.0.0.1"
    assert captive.query("b.test").rcode() == 2
    assert not captive.query("a.test", "AAAA").answer


def test_what_is_handed_over_is_served_whole_or_not_at_all(serve: Serve) -> None:
    """HLD-7: one bad descriptor, an unknown way or other ranges: an error, and every descriptor is closed."""
    gate = serve("a.test")
    other = Ranges(range_of("10.66.0.0/16"), DEFAULT_RANGES.ipv6)
    for way, ranges, wrong in (
        (ADDRESSED, DEFAULT_RANGES, True),
        ("guessed", DEFAULT_RANGES, False),
        (ADDRESSED, other, False),
    ):
        good = [socket.create_server(("127.0.0.1", 0)).detach() for _ in range(2)]
        bad = os.open("/dev/null", os.O_RDONLY) if wrong else socket.create_server(("127.0.0.1", 0)).detach()
        sockets = CaptureSockets(((good[0], way), (bad, way), (good[1], way)), ranges=ranges)
        failed = gate.on_thread(lambda sockets=sockets: _failure(lambda: gate.gate.add_capture(sockets, gate.task)))
        assert isinstance(failed, OSError if wrong else ValueError)
        for fd in (*good, bad):
            with pytest.raises(OSError, match="Bad file"):
                os.fstat(fd)


def _failure(call: Callable[[], object]) -> BaseException | None:
    try:
        call()
    except (OSError, ValueError) as error:
        return error
    return None


def test_direct_attempts_are_recorded_through_the_capture(capture: Capturing) -> None:
    """JRN-3: what the kernel's side reports; what waits is written when the capture ends."""
    gate, captive = capture("a.test")

    def report() -> None:
        for _ in range(3):
            captive.handle.record_direct("udp", bytes([8, 8, 8, 8]), 443)

    gate.on_thread(report)
    gate.on_thread(lambda: gate.gate.remove_capture(captive.handle, cut=True))
    assert [(event.reason, event.count) for event in gate.recording.events] == [
        (Reason.NOT_TCP, 1),
        (Reason.NOT_TCP, 2),
    ]
