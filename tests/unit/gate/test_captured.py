"""Proves captured connections: by name, by address, refused, and their first bytes (HLD-6, GAT-9, ADR-6)."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
from typing import TYPE_CHECKING

import dns.message
import pytest

from tests.unit.gate.kit import Serving, client_hello, policy_of, read_exactly, small, wait
from tidegate.gate.capture import CaptureSockets
from tidegate.model.destination import Destination
from tidegate.model.host import Host
from tidegate.model.reason import Reason
from tidegate.model.verdict import How, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.api import Lab
    from tests.unit.gate.captive import Captive
    from tidegate.model.decision import Decision

    Capturing = Callable[..., tuple[Serving, Captive]]

QUERY = dns.message.make_query("a.test.", "A").to_wire()
GET = b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n"


def until_reset(sock: socket.socket) -> bytes:
    """Return what comes until the end; b"RST" at its end where that is a reset."""
    got = b""
    try:
        while part := sock.recv(65536):
            got += part
    except ConnectionResetError:
        got += b"RST"
    return got


@pytest.mark.parametrize("kind", ["A", "AAAA"])
@pytest.mark.parametrize("redirect", [True, False])
def test_from_getaddrinfo_to_the_origin(lab: Lab, capture: Capturing, kind: str, redirect: bool) -> None:
    """HLD-6: resolver, synthetic address, capture, the one look-up after the verdict, origin reached by its name."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    origin = lab.origin("http", "1.2.3.4", 80)
    gate, captive = capture("a.test:80", redirect=redirect, ports=(80,))
    address = captive.look_up("a.test", kind)
    assert lab.dns.queries == []
    with captive.connect(address, 80) as sock:
        sock.sendall(GET)
        assert until_reset(sock).startswith(b"HTTP/1.1 200")
    assert lab.dns.count("a.test") == 1
    assert origin.connections == 1
    event = gate.event()
    assert (event.host, event.port, event.address, event.how) == ("a.test", 80, "1.2.3.4", How.CAPTURED)
    assert (event.verdict, event.rule, event.detail, event.method) == (Verdict.ALLOW, "a.test:80", "clear-http", "TCP")
    assert event.bytes_up == len(GET)


def test_a_program_that_knows_no_proxy(lab: Lab, capture: Capturing) -> None:
    """HLD-6: the C library's resolver, with AI_ADDRCONFIG too, and verified TLS to the real name."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    origin = lab.origin("http", "1.2.3.4", 443, tls="a.test")
    gate, captive = capture("a.test:443")
    program = (
        "import socket, ssl\n"
        "found = socket.getaddrinfo('a.test', 443, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)\n"
        f"context = ssl.create_default_context(cafile={lab.ca_file!r})\n"
        "raw = socket.create_connection(('a.test', 443), 10)\n"
        "tls = context.wrap_socket(raw, server_hostname='a.test')\n"
        "tls.sendall(b'GET / HTTP/1.0\\r\\nHost: a.test\\r\\n\\r\\n')\n"
        "print(len(found), tls.recv(12))\n"
    )
    status, out, errors = captive.run("python3", "-c", program)
    assert (status, errors) == (0, "")
    assert out == "2 b'HTTP/1.1 200'\n" if lab.ipv6 else out.startswith("1 ")
    assert origin.sni == ["a.test"]
    assert gate.event().detail == "tls"


def test_a_server_that_speaks_first(lab: Lab, capture: Capturing) -> None:
    """HLD-6: nothing waits for the client's first byte; half-close and bytes both ways."""
    lab.dns.set("db.test", A=["1.2.3.4"])
    lab.origin("banner", "1.2.3.4", 3306)
    _, captive = capture("db.test:3306")
    with captive.connect("db.test", 3306) as sock:
        assert sock.recv(100)


@pytest.mark.parametrize(
    ("rule", "allowed"),
    [("1.2.3.4:80", True), ("1.2.3.4", True), ("*:80", True), ("1.2.3.4:81", False), ("a.test:80", False)],
)
def test_an_address_needs_a_rule_for_it(lab: Lab, capture: Capturing, rule: str, allowed: bool) -> None:
    """ADR-6: by itself, by `*` (it is public); never by a name that leads there."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    origin = lab.origin("http", "1.2.3.4", 80)
    gate, captive = capture(rule)
    with captive.connect("1.2.3.4", 80) as sock:
        sock.sendall(GET.replace(b"a.test", b"1.2.3.4"))
        answer = until_reset(sock)
    assert answer.startswith(b"HTTP/1.1 200" if allowed else b"HTTP/1.1 403")
    assert origin.connections == (1 if allowed else 0)
    event = gate.event()
    assert (event.host, event.how) == ("1.2.3.4", How.CAPTURED if allowed else How.REFUSED)
    assert lab.dns.queries == []


@pytest.mark.parametrize(
    "address", ["127.0.0.2", "10.9.8.1", "169.254.169.254", "100.100.100.200", "fd12:3456::1", "64:ff9b::a00:1"]
)
def test_star_admits_public_addresses_only(lab: Lab, capture: Capturing, address: str) -> None:
    """ADR-1, ADR-2, ADR-6: private, metadata and embedded private addresses stay closed; loopback is the task's own."""
    gate, captive = capture("*")
    if address.startswith("127."):
        with pytest.raises(ConnectionRefusedError):
            captive.connect(address, 80)
        assert gate.recording.events == []
        return
    with captive.connect(address, 80) as sock:
        sock.sendall(GET)
        assert until_reset(sock).startswith(b"HTTP/1.1 403")
    assert gate.event().verdict is Verdict.DENY
    assert lab.metadata.connections == 0


@pytest.mark.parametrize(
    "address", ["198.18.1.2", "198.18.0.1", "198.18.0.7", "198.19.255.254", "fd74:6467:6174:6500::102"]
)
def test_an_address_that_no_name_has_is_refused(capture: Capturing, address: str) -> None:
    """HLD-6: inside the synthetic range nothing is but names, even under rules that name these addresses."""
    gate, captive = capture("a.test", "*", "198.18.1.2", "198.18.0.7:80", "[fd74:6467:6174:6500::102]")
    captive.look_up("a.test")
    with captive.connect(address, 80) as sock:
        sock.sendall(GET)
        assert b"address-not-issued" in until_reset(sock)
    event = gate.event()
    assert (event.reason, event.host, event.port) == (Reason.NOT_ISSUED, address, 80)
    captive.look_up("b.test")  # now 198.18.1.2 is a name's
    if address.endswith("102"):
        assert captive.look_up("b.test", "AAAA") == address


def test_a_port_that_no_rule_allows_is_refused_without_a_look_up(lab: Lab, capture: Capturing) -> None:
    """POL-5, ADR-4: the name has an address for its other port; this one is refused before anything leaves."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    gate, captive = capture("a.test:443")
    with captive.connect("a.test", 80) as sock:
        sock.sendall(GET)
        answer = until_reset(sock)
    assert b"port-not-allowed" in answer
    assert b"--allow a.test:80" in answer
    assert gate.event().reason is Reason.PORT_NOT_ALLOWED
    assert lab.dns.queries == []


def test_a_name_that_leads_to_a_private_address_is_refused(lab: Lab, capture: Capturing) -> None:
    """ADR-2, ADR-4: what the name really resolves to is judged, as behind a CONNECT."""
    lab.dns.set("*.test", A=["10.9.8.1"])
    origin = lab.origin("http", "10.9.8.1", 80)
    gate, captive = capture("*.test", "exact.test:80")
    with captive.connect("a.test", 80) as sock:
        sock.sendall(GET)
        assert b"private-address" in until_reset(sock)
    with captive.connect("exact.test", 80) as sock:
        sock.sendall(GET.replace(b"a.test", b"exact.test"))
        assert until_reset(sock).startswith(b"HTTP/1.1 200")
    assert origin.connections == 1
    assert gate.event().reason is Reason.PRIVATE_ADDRESS


def test_the_name_in_tls_must_be_the_captured_one(lab: Lab, capture: Capturing) -> None:
    """GAT-9: an SNI for another allowed name gets an alert, and the origin not a byte."""
    lab.dns.set("*.test", A=["1.2.3.4"])
    origin = lab.origin("canary", "1.2.3.4", 443)
    gate, captive = capture("a.test:443", "b.test:443")
    with captive.connect("a.test", 443) as sock:
        sock.sendall(client_hello("b.test"))
        assert until_reset(sock)[:1] == b"\x15"
    assert gate.event().reason is Reason.SNI_MISMATCH
    assert origin.received_size == 0
    hello = client_hello("a.test")
    with captive.connect("a.test", 443) as sock:
        sock.sendall(hello)
        origin.wait(lambda o: o.received_size == len(hello))


def test_a_host_in_clear_must_be_the_captured_one(lab: Lab, capture: Capturing) -> None:
    """GAT-9: clear-text HTTP for another host is refused in HTTP."""
    lab.dns.set("*.test", A=["1.2.3.4"])
    origin = lab.origin("canary", "1.2.3.4", 80)
    gate, captive = capture("a.test:80", "b.test:80")
    with captive.connect("a.test", 80) as sock:
        sock.sendall(GET.replace(b"a.test", b"b.test"))
        assert b"tunnel-host-mismatch" in until_reset(sock)
    assert gate.event().reason is Reason.TUNNEL_HOST_MISMATCH
    assert origin.received_size == 0


def test_a_captured_address_with_a_name_in_tls_needs_the_name_too(lab: Lab, capture: Capturing) -> None:
    """GAT-9: the neighbour whose name is allowed passes."""
    origin = lab.origin("canary", "1.2.3.4", 443)
    gate, captive = capture("1.2.3.4:443", "a.test:443")
    with captive.connect("1.2.3.4", 443) as sock:
        sock.sendall(client_hello("b.test"))
        assert until_reset(sock)[:1] == b"\x15"
    assert gate.event().host == "b.test"
    hello = client_hello("a.test")
    with captive.connect("1.2.3.4", 443) as sock:
        sock.sendall(hello)
        origin.wait(lambda o: o.received_size == len(hello))


def test_strict_tls_holds_for_captures(lab: Lab, capture: Capturing) -> None:
    """GAT-9: what is not TLS is refused under `tls: strict`, in HTTP where that is spoken."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    origin = lab.origin("canary", "1.2.3.4", 80)
    _, captive = capture("a.test:80", tls="strict")
    with captive.connect("a.test", 80) as sock:
        sock.sendall(GET)
        assert b"tls-required" in until_reset(sock)
    assert origin.received_size == 0


class _Later:
    """An asker whose question is answered by the test."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Decision, Callable[[Decision], None]]] = []

    def ask(self, task: str, decision: Decision, answer: Callable[[Decision], None]) -> Callable[[], None]:
        self.asked.append((task, decision, answer))
        return lambda: None


@pytest.mark.parametrize("allow", [True, False])
def test_a_captured_connection_can_wait_for_a_person(lab: Lab, capture: Capturing, allow: bool) -> None:
    """ASK-1: the connection opens the question, the look-up did not; its bytes wait, then pass or never do."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    origin = lab.origin("http", "1.2.3.4", 80)
    asker = _Later()
    gate, captive = capture(ask=("a.test:80",), asker=asker)
    captive.look_up("a.test")
    assert not asker.asked
    with captive.connect("a.test", 80) as sock:
        sock.sendall(GET)
        wait(lambda: bool(asker.asked))
        ((_, decision, answer),) = asker.asked
        assert str(decision.destination) == "a.test:80"
        assert lab.dns.queries == []
        if allow:
            said = decision.replace(verdict=Verdict.ALLOW, reason=Reason.ALLOWED)
        else:
            said = decision.refuse(Reason.DENY_RULE, fix="")
        gate.on_thread(lambda: answer(said))
        assert until_reset(sock).startswith(b"HTTP/1.1 200" if allow else b"HTTP/1.1 403")
    assert origin.connections == (1 if allow else 0)


def test_with_nobody_to_ask_it_is_refused_at_once(lab: Lab, capture: Capturing) -> None:
    """ASK-4: the look-up works, the connection says that it would wait for approval."""
    gate, captive = capture(ask=("a.test:80",))
    with captive.connect("a.test", 80) as sock:
        sock.sendall(GET)
        assert b"would wait for approval" in until_reset(sock)
    assert gate.event().reason is Reason.NO_APPROVER
    assert lab.dns.queries == []


def test_a_destination_that_does_not_answer_is_told(lab: Lab, capture: Capturing) -> None:
    """GAT-7: 502 with the address for an HTTP client, a reset for TLS and for one that says nothing."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    gate, captive = capture("a.test")
    with captive.connect("a.test", 80) as sock:
        sock.sendall(GET)
        answer = until_reset(sock)
    assert answer.startswith(b"HTTP/1.1 502")
    assert b"1.2.3.4" in answer
    for port, data in ((443, client_hello("a.test")), (3306, b"\x00"), (5432, b"")):
        try:
            with captive.connect("a.test", port) as sock:
                sock.sendall(data)
                assert until_reset(sock) == b"RST"
        except ConnectionResetError:
            continue  # connect() or send() found it there already
    assert [event.reason for event in gate.events(4)] == [Reason.UPSTREAM_REFUSED] * 4


def test_a_reset_and_a_half_close_pass(lab: Lab, capture: Capturing) -> None:
    """GAT-5: the client's end reaches the origin, the origin's answer comes back; a reset is a reset."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("half-close", "1.2.3.4", 7)
    lab.origin("reset", "1.2.3.4", 8)
    _, captive = capture("a.test")
    with captive.connect("a.test", 7) as sock:
        sock.sendall(b"\x00ping")
        sock.shutdown(socket.SHUT_WR)
        assert until_reset(sock).replace(b"RST", b"")
    with captive.connect("a.test", 8) as sock:
        sock.sendall(b"\x00ping")
        assert until_reset(sock).endswith(b"RST")


def test_the_connection_beyond_the_limit_is_dropped(lab: Lab, capture: Capturing) -> None:
    """GAT-6: captured connections and those of the proxy port count together."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("raw", "1.2.3.4", 443)
    gate, captive = capture("a.test:443", limits=small(connections=2))
    with gate.tunnel("a.test:443"), captive.connect("a.test", 443) as first:
        first.sendall(b"\x00")
        assert read_exactly(first, 1) == b"\x00"
        with captive.connect("a.test", 443) as second:
            assert until_reset(second) in (b"", b"RST")
        event = gate.event()
        assert (event.reason, event.host, event.port) == (Reason.TOO_MANY_CONNECTIONS, "a.test", 443)
        assert (event.verdict, event.fix) == (Verdict.DENY, "")


@pytest.mark.parametrize("host", ["1.2.3.4", "a.test"])
def test_port_0_is_refused_before_anything_leaves(lab: Lab, capture: Capturing, host: str) -> None:
    """GAT-1, POL-2: no rule can mean port 0, a rule for every port included; by address and by name."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    gate, captive = capture("1.2.3.4", "a.test")
    with captive.connect(host, 0) as sock:
        sock.sendall(GET)
        assert until_reset(sock).startswith(b"HTTP/1.1 400")
    event = gate.event()
    assert (event.reason, event.host, event.port, event.how) == (Reason.BAD_PORT, host, 0, How.REFUSED)
    assert lab.dns.queries == []


def test_a_change_of_policy_holds_for_captures(lab: Lab, capture: Capturing) -> None:
    """POL-7, POL-8: the address a client still holds is judged by the policy of now."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("http", "1.2.3.4", 80)
    gate, captive = capture("a.test:80")
    address = captive.look_up("a.test")
    with captive.connect(address, 80) as sock:
        sock.sendall(GET)
        assert until_reset(sock).startswith(b"HTTP/1.1 200")
    gate.on_thread(lambda: gate.task.change(policy=policy_of()))
    with captive.connect(address, 80) as sock:
        sock.sendall(GET)
        assert until_reset(sock).startswith(b"HTTP/1.1 403")


def test_a_client_that_resolves_by_itself_may_use_the_proxy(lab: Lab, capture: Capturing) -> None:
    """HLD-6, GAT-1: SOCKS5 or CONNECT with a synthetic address is the name it stands for."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    origin = lab.origin("http", "1.2.3.4", 443, tls="a.test")
    gate, captive = capture("a.test:443")
    address = captive.look_up("a.test")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(lab.ca_file)
    with gate.tunnel(f"{address}:443") as sock, context.wrap_socket(sock, server_hostname="a.test") as tls:
        tls.sendall(GET)
        assert tls.recv(12) == b"HTTP/1.1 200"
    assert origin.connections == 1
    assert gate.event().host == "a.test"
    assert gate.raw(b"CONNECT 198.18.1.9:443 HTTP/1.1\r\nHost: 198.18.1.9:443\r\n\r\n").startswith(b"HTTP/1.1 403")


def test_an_address_that_was_asked_for_too_early_is_its_name_later(lab: Lab, capture: Capturing) -> None:
    """HLD-6: the same bytes at the proxy, before the address was given to a name and after it; CONNECT and plain."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("http", "1.2.3.4", 80)
    gate, captive = capture("a.test:80")
    connect = b"CONNECT 198.18.1.1:80 HTTP/1.1\r\nHost: 198.18.1.1:80\r\n\r\n"
    plain = b"GET http://198.18.1.1/ HTTP/1.1\r\nHost: 198.18.1.1\r\nConnection: close\r\n\r\n"
    for _ in range(2):
        assert gate.raw(connect).startswith(b"HTTP/1.1 403")
        assert gate.raw(plain).startswith(b"HTTP/1.1 403")
    assert captive.look_up("a.test") == "198.18.1.1"
    assert gate.raw(plain).startswith(b"HTTP/1.1 200")
    with gate.connect() as sock:
        sock.sendall(connect)
        assert read_exactly(sock, 12) == b"HTTP/1.1 200"


def test_nothing_waits_for_the_clients_first_byte(serve: Callable[..., Serving]) -> None:
    """HLD-6: no TCP_DEFER_ACCEPT where a server may speak first; on the proxy port it is there."""
    gate = serve()
    for made, there in (
        (lambda fd: gate.gate.add_listener(fd, gate.task), True),
        (lambda fd: _capture(gate, fd), False),
    ):
        fd = socket.create_server(("127.0.0.1", 0)).detach()
        with socket.socket(fileno=os.dup(fd)) as sock:
            gate.on_thread(lambda made=made, fd=fd: made(fd))
            assert (sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT) > 0) is there


def test_a_flood_takes_its_turn(capture: Capturing) -> None:
    """One connection and two look-ups in a turn, however many wait: other tasks' bytes go in between."""
    gate, captive = capture()
    listener = captive.handle.listeners[0]
    resolver = captive.handle._resolver[0]
    socks = [captive.socket(kind=kind) for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM) for _ in range(5)]

    def look() -> tuple[int, int]:
        # On the gate's thread, so that nothing is served meanwhile.
        for sock in socks:
            if sock.type == socket.SOCK_STREAM:
                sock.connect(("1.2.3.4", 5432))
            else:
                sock.connect(("127.0.0.1", 53))
                sock.send(QUERY)
        listener.ready(0, 0)
        resolver.ready(0, 0)
        answered = 0
        for sock in socks[5:]:
            sock.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                answered += bool(sock.recv(512))
        return gate.task.connections, answered

    assert gate.on_thread(look) == (1, 2)
    for sock in socks:
        sock.close()


def _capture(gate: Serving, fd: int) -> object:
    return gate.gate.add_capture(CaptureSockets(((fd, "addressed"),)), gate.task)


@pytest.mark.parametrize("allowed", [True, False])
def test_a_service_of_this_machine(lab: Lab, capture: Capturing, allowed: bool) -> None:
    """HLD-10, ADR-2: localhost:5432 of the task leads to the machine's where a rule names exactly that."""
    origin = lab.origin("banner", "127.0.0.1", 5432, machine=True)
    gate, captive = capture("localhost:5432" if allowed else "localhost:5433", "*")
    fd = captive.socket(bind=("127.0.0.1", 5432)).detach()
    sockets = CaptureSockets(((fd, Destination(Host("localhost"), 5432)),))
    gate.on_thread(lambda: gate.gate.add_capture(sockets, gate.task))
    address = captive.look_up("localhost")
    assert address == "127.0.0.1"
    with captive.connect(address, 5432) as sock:
        assert sock.recv(100) if allowed else until_reset(sock) == b"RST"
    assert origin.connections == (1 if allowed else 0)
    event = gate.event()
    assert (event.host, event.how) == ("localhost", How.CAPTURED if allowed else How.REFUSED)
    assert allowed or event.reason is Reason.OWN_ADDRESS


def test_a_listener_for_one_destination(lab: Lab, capture: Capturing) -> None:
    """HLD-10: a port of the task's loopback that leads to the gate, for one place outside."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("http", "1.2.3.4", 80)
    gate, captive = capture("a.test:80")
    fd = captive.socket(bind=("127.0.0.1", 8080)).detach()
    sockets = CaptureSockets(((fd, Destination(Host("a.test"), 80)),))
    gate.on_thread(lambda: gate.gate.add_capture(sockets, gate.task))
    with captive.connect("127.0.0.1", 8080) as sock:
        sock.sendall(GET)
        assert until_reset(sock).startswith(b"HTTP/1.1 200")
    assert gate.event().host == "a.test"
