"""tidegate.gate.tool_door: a real gate, and a keeper that is the test's."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any

import pytest

from tests.lab.api import raw
from tests.served import until
from tests.unit.gate.kit import policy_of, read_until
from tidegate.gate.task import GateTask
from tidegate.gate.tool_door import ToolDoor
from tidegate.model.reason import Reason
from tidegate.model.verdict import How

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.lab.api import Lab
    from tests.unit.gate.kit import Serving

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
GET = b"GET http://tools.tidegate.internal/t HTTP/1.1\r\nHost: tools.tidegate.internal\r\nConnection: close\r\n\r\n"


class Kept:
    """A gate whose task has tools, and the keeper's end of the channel."""

    def __init__(self, gate: Serving) -> None:
        self.gate = gate
        ours, self.channel = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.channel.settimeout(10)
        self.heard: list[tuple[str, dict[str, Any]]] = []
        self.door: ToolDoor = gate.on_thread(lambda: ToolDoor(gate.gate, ours.detach(), gate.task))
        self.door.called = lambda tool, how: self.heard.append((tool, how))

    def take(self) -> socket.socket:
        """Take the connection that the gate hands over."""
        data, (fd,), _flags, _address = socket.recv_fds(self.channel, 100, 4)
        assert data == b"connect"
        sock = socket.socket(fileno=fd)
        sock.settimeout(10)
        return sock

    def answer(self, sock: socket.socket) -> bytes:
        """Answer one request, and return it."""
        found = read_until(sock, b"\r\n\r\n")
        sock.sendall(ANSWER)
        return found


@pytest.fixture
def kept(lab: Lab, serve: Callable[..., Serving]) -> Iterator[Kept]:
    """A gate with tools, that allows a host of the lab besides."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    made = Kept(serve("a.test:80"))
    yield made
    made.channel.close()


def test_a_request_and_a_tunnel_reach_the_keeper(kept: Kept) -> None:
    """SRV-6: absolute form arrives in origin form with the gate's name as Host; a tunnel byte for byte."""
    with kept.gate.connect() as client:
        client.sendall(GET)
        with kept.take() as sock:
            head = kept.answer(sock)
            assert head.startswith(b"GET /t HTTP/1.1\r\nHost: tools.tidegate.internal\r\n")
            assert client.recv(65536).endswith(b"\r\n\r\nhi")
    with kept.gate.tunnel("tools.tidegate.internal:80") as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: tools.tidegate.internal\r\n\r\n")
        with kept.take() as sock:
            assert kept.answer(sock) == b"GET / HTTP/1.1\r\nHost: tools.tidegate.internal\r\n\r\n"
            assert client.recv(65536) == ANSWER
    first = kept.gate.event()
    assert (first.name, first.source, first.how, first.reason) == ("tools", "--tool", How.FORWARDED, Reason.ALLOWED)


@pytest.mark.parametrize("name", [b"TOOLS.Tidegate.Internal", b"tools.tidegate.internal."])
def test_the_name_is_compared_in_its_canonical_form(kept: Kept, name: bytes) -> None:
    """SRV-6, POL-3: case and a final dot make no other name."""
    with kept.gate.connect() as client:
        client.sendall(b"GET http://" + name + b"/ HTTP/1.1\r\nHost: " + name + b"\r\n\r\n")
        with kept.take() as sock:
            assert b"Host: tools.tidegate.internal\r\n" in kept.answer(sock)


@pytest.mark.parametrize("port", [1, 81, 443, 8080])
def test_other_ports_of_the_name_are_refused(kept: Kept, port: int) -> None:
    """SRV-6: the tools have one port; another is no way to them, and nothing is looked up."""
    answer = kept.gate.raw(
        b"CONNECT tools.tidegate.internal:%d HTTP/1.1\r\nHost: tools.tidegate.internal\r\n\r\n" % port
    )
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert kept.gate.event().reason is Reason.PORT_NOT_ALLOWED


@pytest.mark.parametrize(
    "where", ["x.tools.tidegate.internal:80", "tools.tidegate.internal.a.test:80", "tidegate.internal:80", "tools:80"]
)
def test_names_beside_it_are_as_any_other(kept: Kept, where: str) -> None:
    """SRV-6: what only looks like it is judged by the policy."""
    answer = kept.gate.raw(b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n\r\n" % (where.encode(), where.encode()))
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert kept.gate.event().name == "no-rule"


def test_a_host_that_disagrees_is_refused_by_the_gate(kept: Kept) -> None:
    """SRV-6, GAT-3, GAT-9: neither another Host beside the target nor one inside a tunnel gets to the keeper."""
    head = b"GET http://tools.tidegate.internal/ HTTP/1.1\r\nHost: a.test\r\n\r\n"
    assert kept.gate.raw(head).startswith(b"HTTP/1.1 400 ")
    with kept.gate.tunnel("tools.tidegate.internal:80") as client, kept.take() as sock:
        client.sendall(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
        assert client.recv(65536).startswith(b"HTTP/1.1 403 ")
        assert sock.recv(100) == b""


def test_another_task_of_the_gate_has_no_way_to_them(kept: Kept) -> None:
    """SRV-6: the same gate serves a task without tools: for it the name is one that no rule names."""
    other = GateTask("t2", policy_of("a.test:80"))
    address, _ = kept.gate.on_thread(lambda: kept.gate.listen(other))
    assert raw(address, GET).startswith(b"HTTP/1.1 403 ")
    assert kept.gate.event().name == "no-rule"


class _Nobody:
    def ask(self, *_: object) -> None:
        raise AssertionError("a question was opened")


@pytest.mark.parametrize("port", [80, 81])
@pytest.mark.parametrize("rules", [{}, {"ask": ("**",)}, {"allow": ("**", "tools.tidegate.internal")}])
def test_without_tools_nobody_is_asked_and_nothing_looked_up(
    lab: Lab, serve: Callable[..., Serving], port: int, rules: dict[str, Any]
) -> None:
    """SRV-6, ASK-1: whatever rule there is; the refusal says what is missing and what to write."""
    gate = serve(*rules.get("allow", ()), ask=rules.get("ask", ()), asker=_Nobody())
    answer = gate.raw(b"CONNECT tools.tidegate.internal:%d HTTP/1.1\r\nHost: tools.tidegate.internal\r\n\r\n" % port)
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b": this command was given no tools; whoever begins it names them" in answer
    assert answer.endswith(b"; to allow it: --tool NAME\n")
    assert gate.event().reason is Reason.NO_TOOLS
    assert lab.dns.queries == []


def test_a_deny_rule_is_above_tools(lab: Lab, serve: Callable[..., Serving]) -> None:
    """SRV-6, POL-5: deny wins over everything."""
    assert lab
    kept = Kept(serve(deny=("tools.tidegate.internal",)))
    with kept.channel:
        assert kept.gate.raw(GET).startswith(b"HTTP/1.1 403 ")
        assert kept.gate.event().reason is Reason.DENY_RULE


def test_a_paused_task_has_no_tools(kept: Kept) -> None:
    """SRV-6: pause refuses them too, and its end brings them back."""
    kept.gate.on_thread(lambda: kept.gate.task.pause(paused=True))
    assert kept.gate.raw(GET).startswith(b"HTTP/1.1 403 ")
    assert kept.gate.event().reason is Reason.PAUSED
    kept.gate.on_thread(lambda: kept.gate.task.pause(paused=False))
    with kept.gate.connect() as client:
        client.sendall(GET)
        with kept.take() as sock:
            kept.answer(sock)
            assert client.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_a_keeper_that_takes_nothing_is_a_refusal(kept: Kept) -> None:
    """SRV-6: a queue that is full, and a keeper that is gone, are 502 at once: the gate never waits."""
    found = [kept.gate.on_thread(kept.door.connect) for _ in range(5000)]
    assert None in found
    for sock in found:
        if sock is not None:
            sock.close()
    assert kept.gate.raw(GET).startswith(b"HTTP/1.1 502 ")
    kept.channel.close()
    assert kept.gate.raw(GET).startswith(b"HTTP/1.1 502 ")


def test_what_was_called_is_heard_and_nothing_else(kept: Kept) -> None:
    """SRV-6, JRN-5: names and numbers come through; what is no such message, or more than it, does not."""
    whole = {"tool": "t", "result": "ok", "status": 0, "in": 1, "out": 2, "seconds": 0.5, "output": "hunter2", "x": 1}
    for data in (b"no json", b"[]", b"{}", b'{"tool": "t"}', json.dumps(whole).encode()):
        kept.channel.send(data)
    until(lambda: kept.heard)
    assert kept.heard == [("t", {"result": "ok", "status": 0, "in": 1, "out": 2, "seconds": 0.5})]


def test_its_end_lets_go_of_the_keeper(kept: Kept) -> None:
    """SRV-6: a closed door has no connection to give, and the keeper sees the end of the channel."""
    kept.gate.on_thread(kept.door.close)
    kept.gate.on_thread(kept.door.close)
    assert kept.gate.on_thread(kept.door.connect) is None
    assert kept.channel.recv(10) == b""
