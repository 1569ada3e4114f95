"""From a plan to a connection: the order of asking, resolving, admitting and dialling."""

from __future__ import annotations

import errno
import threading
from typing import TYPE_CHECKING

import pytest

from tests.unit.gate.kit import read_exactly, wait
from tidegate.addresses.surroundings import Surroundings
from tidegate.model.address_class import Admission
from tidegate.model.reason import Reason
from tidegate.model.rule import RuleLimits, only
from tidegate.model.verdict import How, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.api import Lab
    from tests.unit.gate.kit import Serving
    from tidegate.model.decision import Decision

    Serve = Callable[..., Serving]


def connect(host: str, port: int = 443) -> bytes:
    """Return a CONNECT."""
    return f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()


def test_rebinding_never_reaches_loopback(lab: Lab, serve: Serve) -> None:
    """B22: one look-up a connection, all checked, the checked one dialled; a hundred tries at once change nothing."""
    lab.dns.set("a.test", sequence=[{"A": ["1.2.3.4"]}, {"A": ["127.0.0.1"]}] * 60)
    lab.origin("banner", "1.2.3.4", 443, text="hi")
    canary = lab.canary("127.0.0.1", 443)
    gate = serve("*")
    answers: list[bytes] = []

    def client() -> None:
        answers.extend(gate.raw(connect("a.test"), until=b"hi") for _ in range(10))

    threads = [threading.Thread(target=client) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert canary.connections == 0
    assert len(answers) == 100
    assert {answer[:13] for answer in answers} <= {b"HTTP/1.1 200 ", b"HTTP/1.1 403 "}
    assert lab.dns.count("a.test", "A") <= 100


@pytest.mark.parametrize("bad", ["127.0.0.1", "10.9.8.7", "169.254.169.254", "100.100.100.200"])
def test_one_bad_address_refuses_the_whole_name(lab: Lab, serve: Serve, bad: str) -> None:
    """B23, ADR-4: [closed port, canary] is refused and the canary stays silent; without the bad one it is 502."""
    lab.dns.set("mixed.test", A=["1.2.3.9", bad])
    lab.dns.set("pure.test", A=["1.2.3.9"])
    canary = lab.canary("127.0.0.1", 443)
    gate = serve("*")
    answer = gate.raw(connect("mixed.test"))
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert bad.encode() in answer
    assert gate.raw(connect("pure.test")).startswith(b"HTTP/1.1 502 ")
    assert canary.connections == 0
    assert gate.event().how is How.REFUSED
    assert gate.event().address == bad


def test_metadata_hears_nothing(lab: Lab, serve: Serve) -> None:
    """ADR-1: by name, by address, by a name that leads there; whatever the rules say."""
    metadata = lab.metadata
    lab.dns.set("a.test", A=["169.254.169.254"])
    lab.dns.set("metadata.google.internal", A=["169.254.169.254"])
    gate = serve("**", "169.254.169.254:80", "metadata.google.internal:80", "a.test:80")
    for host in ("169.254.169.254", "metadata.google.internal", "a.test", "[::ffff:169.254.169.254]"):
        assert gate.raw(connect(host, 80)).startswith(b"HTTP/1.1 403 ")
        assert gate.raw(f"GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()).startswith(b"HTTP/1.1 403 ")
    assert metadata.connections == 0
    assert lab.dns.count("metadata.google.internal", "A") == 0


def test_nat64_keeps_public_sites_reachable(lab: Lab, serve: Serve) -> None:
    """B20, ADR-3: 64:ff9b::1.2.3.4 passes, 64:ff9b::10.0.0.1 does not."""
    if not lab.ipv6:
        pytest.skip("no IPv6 here")
    lab.dns.set("a.test", AAAA=["64:ff9b::102:304"])
    lab.dns.set("b.test", AAAA=["64:ff9b::a00:1"])
    lab.origin("banner", "64:ff9b::102:304", 443, text="hi")
    gate = serve("*")
    assert gate.raw(connect("a.test"), until=b"hi").endswith(b"hi")
    assert gate.raw(connect("b.test")).startswith(b"HTTP/1.1 403 ")


def test_an_exact_rule_admits_an_own_port_and_no_other(lab: Lab, serve: Serve) -> None:
    """B28, ADR-2: 127.0.0.1:PORT opens that port; another port, a wildcard and `localhost` do not."""
    local = lab.origin("banner", "127.0.0.1", 0, machine=True, text="me")
    gate = serve(f"127.0.0.1:{local.port}")
    with gate.tunnel(f"127.0.0.1:{local.port}") as sock:
        assert read_exactly(sock, 2) == b"me"
    for host, port in (("127.0.0.1", local.port + 1), ("localhost", local.port), ("127.0.0.2", local.port)):
        assert gate.raw(connect(host, port)).startswith(b"HTTP/1.1 403 ")
    assert serve("*").raw(connect("127.0.0.1", local.port)).startswith(b"HTTP/1.1 403 ")
    with serve(f"localhost:{local.port}").tunnel(f"localhost:{local.port}") as sock:
        assert read_exactly(sock, 2) == b"me"
    never = serve(f"127.0.0.1:{local.port}", own=Admission.NEVER)
    assert never.raw(connect("127.0.0.1", local.port)).startswith(b"HTTP/1.1 403 ")


def test_protected_ports_are_never_reached(lab: Lab, serve: Serve) -> None:
    """ADR-1: tidegate's own ports, on every address of this machine."""
    local = lab.origin("banner", "127.0.0.1", 0, machine=True)
    both = (f"127.0.0.1:{local.port}", f"{lab.MACHINE4}:{local.port}")
    gate = serve(*both, protected_ports=(local.port,))
    for host in ("127.0.0.1", lab.MACHINE4):
        assert gate.raw(connect(host, local.port)).startswith(b"HTTP/1.1 403 ")
    assert {event.reason for event in gate.events(2)} == {Reason.PROTECTED_PORT}
    assert local.connections == 0


def test_connections_a_minute(lab: Lab, serve: Serve) -> None:
    """GAT-6: the third is 429 when the rule says two; another rule's are not counted."""
    lab.origin("banner", "1.2.3.4", 443, text="hi")
    gate = serve("1.2.3.4:443", limit=RuleLimits(connections_per_minute=2))
    answers = [gate.raw(connect("1.2.3.4"), until=b"hi")[:13] for _ in range(3)]
    assert answers == [b"HTTP/1.1 200 ", b"HTTP/1.1 200 ", b"HTTP/1.1 429 "]
    assert Reason.RATE_LIMITED in {event.reason for event in gate.events(3)}


def test_a_rule_with_methods_opens_no_tunnel(lab: Lab, serve: Serve) -> None:
    """INS-6: what cannot be checked is refused; plain requests are held to it."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("http", "1.2.3.4", 80)
    gate = serve("a.test", limit=RuleLimits(requests=only(methods=("GET",), paths=("/ok/**",))))
    assert gate.raw(connect("a.test")).startswith(b"HTTP/1.1 403 ")
    for method, path, status in (
        ("GET", "/ok/x", 200),
        ("POST", "/ok/x", 403),
        ("GET", "/no", 403),
        ("GET", "/ok/../no", 403),
    ):
        data = f"{method} http://a.test{path} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n".encode()
        assert gate.raw(data).startswith(b"HTTP/1.1 %d " % status)
    assert {event.reason for event in gate.events(5)} == {Reason.METHOD_NOT_ALLOWED, Reason.ALLOWED}


def test_an_answer_that_comes_before_ask_returns(lab: Lab, serve: Serve) -> None:
    """An Asker may know the answer already."""

    class Knows:
        def ask(self, _task: str, decision: object, answer: Callable[[object], None]) -> Callable[[], None]:
            answer(decision.replace(verdict=Verdict.ALLOW, reason=Reason.ALLOWED))  # type: ignore[attr-defined]
            return lambda: None

    lab.dns.set("q.test", A=["1.2.3.4"])
    lab.origin("banner", "1.2.3.4", 443, text="hi")
    gate = serve(ask=("q.test",), asker=Knows())
    assert gate.raw(connect("q.test"), until=b"hi").endswith(b"hi")


@pytest.mark.parametrize(
    ("number", "reason"), [(errno.EPERM, Reason.INTERNAL), (errno.EMFILE, Reason.OUT_OF_RESOURCES)]
)
def test_a_machine_that_does_not_tell_its_addresses_refuses_and_keeps_nothing(
    lab: Lab, serve: Serve, number: int, reason: Reason
) -> None:
    """ADR-2: without them nothing is admitted, also where that shows only after the look-up; no connection hangs."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    fine = Surroundings(frozenset(), frozenset())
    asked: list[int] = []

    def surroundings() -> Surroundings:
        asked.append(1)
        if len(asked) > 1:
            raise OSError(number, "the kernel does not tell")
        return fine

    gate = serve("a.test:443", surroundings=surroundings)
    try:
        assert gate.raw(connect("a.test")).startswith(b"HTTP/1.1 %d " % reason.status)
        assert gate.event().reason is reason
        gate.idle()
        assert len(gate.faults) == 1
    finally:
        gate.faults.clear()


def test_a_literal_is_judged_again_after_its_answer(lab: Lab, serve: Serve) -> None:
    """ADR-2, ADR-6: an address that became this machine's own while a person was asked is not reached."""
    canary = lab.canary("1.2.3.66", 443, machine=False)
    answers: list[Callable[[Decision], None]] = []

    class Asking:
        def ask(self, _task: str, decision: Decision, answer: Callable[[Decision], None]) -> Callable[[], None]:
            answers.append(lambda _: answer(decision.replace(verdict=Verdict.ALLOW, reason=Reason.ALLOWED)))
            return lambda: None

    now = [Surroundings(frozenset(), frozenset())]
    gate = serve(ask=("*:443",), asker=Asking(), surroundings=lambda: now[0])
    with gate.connect() as sock:
        sock.sendall(connect("1.2.3.66"))
        wait(lambda: bool(answers))
        now[0] = Surroundings(frozenset({b"\x01\x02\x03\x42"}), frozenset())
        gate.on_thread(lambda: answers[0](None))  # type: ignore[arg-type]
        assert read_exactly(sock, 12) == b"HTTP/1.1 403"
    assert gate.event().reason is Reason.OWN_ADDRESS
    assert canary.connections == 0
