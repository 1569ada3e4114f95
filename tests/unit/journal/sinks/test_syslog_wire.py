"""tidegate.journal.sinks.syslog_wire: what tests/sinks does not see: receivers that close, and do not read."""

from __future__ import annotations

import os
import re
import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.sinks.receivers import Syslog
from tests.sinks.rig import authority
from tests.unit.journal.sinks.test_record import record
from tidegate.journal.sinks import syslog_wire
from tidegate.journal.sinks.client_tls import tls_context
from tidegate.journal.sinks.sink import LATER, TAKEN
from tidegate.journal.sinks.syslog_wire import Datagrams, Stream, SyslogSink

if TYPE_CHECKING:
    from pathlib import Path


def test_a_connection_that_was_closed_meanwhile_is_made_anew() -> None:
    """JRN-6: a receiver that closes idle connections loses nothing: nothing is written into a closed one."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sink = SyslogSink(Stream("127.0.0.1", listener.getsockname()[1]), "box")
        for _ in range(2):
            assert sink.send([record()]).state == TAKEN
            one, _ = listener.accept()
            assert b"tidegate" in one.recv(4096)
            one.close()
        sink.close()


def test_a_receiver_that_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """JRN-6: what its kernel does not acknowledge has not arrived."""
    monkeypatch.setattr(syslog_wire, "SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sink = SyslogSink(Stream("127.0.0.1", listener.getsockname()[1]), "box")
        many = [record("task.created", command=["x" * 2000] * 4)] * 2000
        assert sink.send(many).state == LATER
        sink.close()


def test_abort_wakes_whoever_waits() -> None:
    """JRN-6: a server that stops does not wait for a receiver that does not read."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sink = SyslogSink(Stream("127.0.0.1", listener.getsockname()[1]), "box")
        states: list[str] = []
        many = [record("task.created", command=["x" * 2000] * 4)] * 2000
        thread = threading.Thread(target=lambda: states.append(sink.send(many).state))
        thread.start()
        while thread.is_alive():
            sink.abort()
            thread.join(0.05)
        assert states == [LATER]


@pytest.mark.parametrize("ca", [False, True])
def test_certificates_are_verified(ca: bool) -> None:
    """JRN-6, RFC 5425: an authority that is not known is refused and nothing is sent; its own is taken."""
    with Syslog("tls", authority().context) as one:
        context = tls_context(authority().pem if ca else "")
        sink = SyslogSink(Stream("localhost", one.port, context), "box")
        outcome = sink.send([record()])
        assert (outcome.state == TAKEN) is ca
        assert ca or "certificate verify failed" in outcome.why
        sink.close()
        assert len(one.messages) == int(ca)


@pytest.mark.parametrize("known", [True, False])
def test_a_certificate_is_shown(known: bool) -> None:
    """JRN-6: a receiver that wants one takes the one it knows; that it does not take ours is said, not only noticed."""
    shown: Any = authority().client if known else {}
    with Syslog("tls", authority().strict) as receiver:
        sink = SyslogSink(Stream("localhost", receiver.port, tls_context(authority().pem, **shown)), "box")
        outcome = sink.send([record()])
        sink.close()
    assert outcome.state == (TAKEN if known else LATER)
    assert receiver.ids == ([record().id] if known else [])
    # The alert may be overtaken by the end of the connection.
    assert known or re.search("certificate required|closed|[Rr]eset|[Pp]ipe|EOF", outcome.why)


def test_nobody_at_the_path(tmp_path: Path) -> None:
    """JRN-6: no socket, and one that nobody listens at, is tried again; so is a UDP port that nobody has."""
    path = str(tmp_path / "log")
    sink = SyslogSink(Datagrams(path=path), "box")
    assert sink.send([record()]).state == LATER
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        one.bind(path)
        assert sink.send([record()]).state == TAKEN
        assert b"tidegate" in one.recv(4096)
    assert sink.send([record()]).state == LATER
    os.unlink(path)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        port = udp.getsockname()[1]
    there = SyslogSink(Datagrams(host="localhost", port=port), "box")
    assert there.send([record()]).state == LATER
    there.close()
    sink.close()
