r"""What the gate's tests share: a gate in a thread, what it recorded, and small ways to talk to it.

    def test_it(lab, serve):
        lab.origin("echo", "1.2.3.4", 80)
        lab.dns.set("a.test", A=["1.2.3.4"])
        gate = serve("a.test:80")
        assert gate.raw(b"GET http://a.test/ HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200")
        assert gate.event().host == "a.test"

The gate, its sockets and its policy are the real ones.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from typing import TYPE_CHECKING, Any

from tests.lab.api import raw
from tidegate.gate.gate import Gate, GateTask
from tidegate.model.limits import Limits
from tidegate.model.rule import Layer, Origin, RuleLimits
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.policy import make_policy
from tidegate.policy.rows import rule_row

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.model.event import Event
    from tidegate.policy.policy import Policy

PATIENCE = 60.0  # seconds for what is to happen soon: a bound for what hangs, also on a machine that is far too busy


def policy_of(
    *allow: str, ask: tuple[str, ...] = (), deny: tuple[str, ...] = (), limit: RuleLimits | None = None, **more: Any
) -> Policy:
    """Return a policy with rules a person wrote on the command line."""
    rows = [
        rule_row(
            text,
            verdict,
            phase,
            "command-line",
            f"--{verdict.value}",
            Origin.WRITTEN,
            Layer.COMMAND_LINE,
            limit or RuleLimits(),
        )
        for verdict, texts in ((Verdict.ALLOW, allow), (Verdict.ASK, ask), (Verdict.DENY, deny))
        for text in texts
        for phase in Phase
    ]
    return make_policy(rows, **more)


class Recording:
    """A Recorder that keeps everything."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.flushes = 0

    def record(self, event: Event) -> None:
        """Keep it."""
        self.events.append(event)

    def flush(self) -> None:
        """Count it."""
        self.flushes += 1


class Clock:
    """A gate's monotonic seconds that pass only where the test says so: `serve("a.test:80", clock=clock)`.

    So a bound of time neither passes by while a busy machine keeps the test waiting, nor is it waited for.
    """

    def __init__(self) -> None:
        self._now = time.monotonic()

    def __call__(self) -> float:
        """Say what time it is."""
        return self._now

    def goes_on(self, seconds: float, serving: Serving) -> None:
        """Let so much time pass, and what is due by then happen."""
        serving.on_thread(lambda: None)  # what came before this has happened before it
        self._now += seconds
        for _ in range(2):  # what is due runs behind what was posted in the same turn
            serving.on_thread(lambda: None)


class Serving:
    """A gate that runs in a thread of its own, with one task on one listener of the machine's loopback."""

    def __init__(self, policy: Policy, *, task: str = "t1", **options: Any) -> None:
        self.recording = Recording()
        self.faults: list[Exception] = []
        self.gate = Gate(recorder=self.recording, wall=time.time, fault=self.faults.append, **options)  # noqa: TID251
        self.task = GateTask(task, policy)
        self.address, self.listener = self.listen(self.task)
        self._thread = threading.Thread(target=self.gate.run, daemon=True)
        self._thread.start()

    def listen(self, task: GateTask) -> tuple[tuple[str, int], Any]:
        """Open one more listener; before the gate runs, or on its thread."""
        sock = socket.create_server(("127.0.0.1", 0), backlog=4096)
        address = sock.getsockname()
        return address, self.gate.add_listener(sock.detach(), task)

    def on_thread(self, call: Callable[[], Any]) -> Any:
        """Run something on the gate's thread, and return what it returns."""
        done = threading.Event()
        result: list[Any] = []

        def run() -> None:
            try:
                result.append(call())
            finally:
                done.set()

        self.gate.post(run)
        assert done.wait(PATIENCE), "the gate's thread does not turn"
        return result[0]

    @property
    def timers(self) -> int:
        """How many bounds of time run now: one more where the gate has begun to wait for what a client has begun."""
        return int(self.on_thread(lambda: self.gate.reactor.timers))

    def connect(self) -> socket.socket:
        """Return a connection to the listener."""
        sock = socket.create_connection(self.address, timeout=PATIENCE)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def raw(self, data: bytes, **options: Any) -> bytes:
        """Write exact bytes on a new connection and return what comes until its end."""
        return raw(self.address, data, **options)

    def tunnel(self, where: str, *, version: str = "1.1") -> socket.socket:
        """Return a connection on which a CONNECT was answered with 200."""
        sock = self.connect()
        sock.sendall(f"CONNECT {where} HTTP/{version}\r\nHost: {where}\r\n\r\n".encode())
        head = read_head(sock)
        assert head.startswith(b"HTTP/1.1 200 "), head
        return sock

    def events(self, count: int) -> list[Event]:
        """Wait for so many events and return them."""
        wait(lambda: len(self.recording.events) >= count, lambda: f"{self.recording.events} of {count}")
        return list(self.recording.events)

    def event(self, number: int = 0) -> Event:
        """Wait for an event and return it."""
        return self.events(number + 1)[number]

    def idle(self) -> None:
        """Wait until no connection is open any more."""
        # Whoever was told its last word and sends on, or stays, may do so for ten seconds (gate/linger.py).
        wait(lambda: self.gate.connections == 0, lambda: f"{self.gate.connections} are open")

    def stop(self) -> None:
        """End it; a bug that showed on the way fails the test."""
        self.gate.stop()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "the gate does not stop"  # what it has open is its thread's still
        self.gate.close()
        assert not self.faults, self.faults
        assert self.gate.connections == 0
        assert self.task.connections == 0


def wait(
    condition: Callable[[], bool], what: Callable[[], str] = lambda: "it did not happen", timeout: float = PATIENCE
) -> None:
    """Wait until something is so."""
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, what()
        time.sleep(0.002)


def read_head(sock: socket.socket) -> bytes:
    """Read one head byte for byte, so that nothing behind it is taken."""
    got = b""
    while not got.endswith(b"\r\n\r\n"):
        data = sock.recv(1)
        if not data:
            break
        got += data
    return got


def read_exactly(sock: socket.socket, size: int) -> bytes:
    """Read so many bytes, fewer at the end."""
    got = b""
    while len(got) < size and (data := sock.recv(min(65536, size - len(got)))):
        got += data
    return got


def read_until(sock: socket.socket, mark: bytes) -> bytes:
    """Read to a mark, with what came behind it."""
    got = b""
    while mark not in got:
        data = sock.recv(65536)
        assert data, got[-2000:]
        got += data
    return got


def client_hello(name: str | None = "a.test", alpn: tuple[str, ...] = ()) -> bytes:
    """Return a real ClientHello, as OpenSSL writes it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if alpn:
        context.set_alpn_protocols(list(alpn))
    out = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return out.read()


def small(**limits: Any) -> Limits:
    """Return limits with some fields changed."""
    return Limits(**limits)
