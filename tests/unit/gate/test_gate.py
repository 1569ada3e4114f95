"""The gate as a whole."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

from tests.descriptors import descriptors
from tests.lab.api import raw
from tests.unit.gate.kit import Recording, Serving, policy_of, read_exactly, read_head, small, wait
from tidegate.gate.gate import Gate, GateTask
from tidegate.model.reason import Reason
from tidegate.model.verdict import How, Phase

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.api import Lab
    from tidegate.gate.record import Entry
    from tidegate.model.decision import Decision

    Serve = Callable[..., Serving]


def test_stop_closes_and_records_everything(lab: Lab) -> None:
    """GAT-6: tunnels, half-sent requests, refused ones that linger; then no descriptor is left."""
    lab.origin("raw", "1.2.3.4", 443)
    before = descriptors()
    gate = Serving(policy_of("1.2.3.4:443", limits=small(connections=1000)))
    tunnels = [gate.tunnel("1.2.3.4:443") for _ in range(200)]
    half = gate.connect()
    half.sendall(b"CONNECT 1.2")
    refused = gate.connect()
    refused.sendall(b"CONNECT b.test:1 HTTP/1.1\r\nHost: b.test:1\r\n\r\n")
    wait(lambda: gate.gate.connections == 202)
    gate.stop()
    assert len([event for event in gate.recording.events if event.reason is Reason.STOPPING]) == 200
    for sock in (*tunnels, half, refused):
        sock.close()
    assert descriptors() <= before
    assert threading.active_count() == 1 or not any(thread.name.startswith("gate") for thread in threading.enumerate())


def test_stop_works_from_a_signal_handler_before_and_after_run() -> None:
    """`stop` may come first; `run` then returns at once."""
    gate = Gate(recorder=_Nothing(), wall=time.monotonic)
    gate.stop()
    gate.run()
    gate.close()


class _Nothing:
    def record(self, _event: object) -> None:
        """Forget it."""

    def flush(self) -> None:
        """Nothing to write."""


def test_foreign_descriptors_share_the_loop(serve: Serve) -> None:
    """The gate process watches its control socket here; it is told of bytes and of the end."""
    gate = serve()
    near, far = socket.socketpair()
    near.setblocking(False)
    heard: list[bytes] = []

    def callback() -> None:
        while True:
            try:
                data = near.recv(100)
            except BlockingIOError:
                return
            heard.append(data)
            if not data:
                return

    gate.on_thread(lambda: gate.gate.register(near.fileno(), callback))
    far.sendall(b"hello")
    wait(lambda: heard == [b"hello"])
    far.close()
    wait(lambda: heard == [b"hello", b""])
    gate.on_thread(lambda: gate.gate.unregister(near.fileno()))
    near.close()


def test_later_and_post_run_on_its_thread(serve: Serve) -> None:
    """What the runtime does to a living gate happens between two turns."""
    gate = serve()
    seen: list[str] = []
    gate.gate.post(lambda: gate.gate.later(0.05, lambda: seen.append(threading.current_thread().name)))
    wait(lambda: bool(seen))
    assert seen == [gate._thread.name]


def test_an_idle_gate_is_small_and_has_one_thread() -> None:
    """At most 15 MB of resident memory, no thread, nothing heavy imported."""
    program = (
        "import sys, time, os\n"
        "sys.path.insert(0, 'src')\n"
        "from tidegate.gate.gate import Gate, GateTask\n"
        "from tidegate.policy.policy import make_policy\n"
        "class R:\n"
        "    def record(self, e): pass\n"
        "    def flush(self): pass\n"
        "import _socket\n"
        "s = _socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(5)\n"
        "g = Gate(recorder=R(), wall=time.time)\n"
        "g.add_listener(s.detach(), GateTask('t', make_policy()))\n"
        "g.later(0.1, g.stop)\n"
        "g.run()\n"
        "status = open('/proc/self/status').read()\n"
        "print([l.split()[1] for l in status.splitlines() if l.startswith(('VmRSS', 'Threads'))])\n"
        "heavy = {'re', 'json', 'socket', 'ipaddress', 'threading', 'asyncio', 'dataclasses', 'typing', 'logging'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], cwd=root, capture_output=True, text=True, check=True
    )
    size, threads = eval(done.stdout.splitlines()[0])
    assert int(size) < 15_000
    assert int(threads) == 1
    assert done.stdout.splitlines()[1] == "[]"


def test_a_change_of_policy_holds_for_new_connections(lab: Lab, serve: Serve) -> None:
    """POL-7: an open tunnel stays open, the next connection is judged by the new policy."""
    lab.origin("raw", "1.2.3.4", 443)
    gate = serve("1.2.3.4:443")
    with gate.tunnel("1.2.3.4:443") as sock:
        gate.on_thread(lambda: gate.task.change(policy=policy_of()))
        sock.sendall(b"\x00")
        assert read_exactly(sock, 1) == b"\x00"
        answer = gate.raw(b"CONNECT 1.2.3.4:443 HTTP/1.1\r\nHost: 1.2.3.4:443\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 403 ")


def test_a_cut_closes_one_tasks_connections_and_no_others(lab: Lab, serve: Serve) -> None:
    """POL-8: what the operator cuts is recorded as cut; another task's tunnel to the same host lives on."""
    lab.origin("raw", "1.2.3.4", 443)
    gate = serve("1.2.3.4:443")
    other = GateTask("t2", policy_of("1.2.3.4:443"))
    address, _listener = gate.on_thread(lambda: gate.listen(other))
    with gate.tunnel("1.2.3.4:443") as mine, socket.create_connection(address, 10) as theirs:
        theirs.sendall(b"CONNECT 1.2.3.4:443 HTTP/1.1\r\nHost: 1.2.3.4:443\r\n\r\n")
        assert read_head(theirs).startswith(b"HTTP/1.1 200 ")
        assert gate.on_thread(lambda: gate.gate.cut(gate.task, Reason.CUT)) == 1
        assert mine.recv(1) == b""
        theirs.sendall(b"\x00")
        assert read_exactly(theirs, 1) == b"\x00"
    event = gate.event()
    assert (event.task, event.how, event.reason) == ("t1", How.TUNNELED, Reason.CUT)
    gate.events(2)
    wait(lambda: not other.connections)
    assert not gate.task.clients
    assert not other.clients


def test_a_cut_takes_what_is_wanted_only(lab: Lab, serve: Serve) -> None:
    """POL-8: `cut HOST` closes what leads there, in whatever stage, and leaves the rest."""
    for address in ("1.2.3.4", "1.2.3.5"):
        lab.origin("raw", address, 443)
    gate = serve("1.2.3.4:443", "1.2.3.5:443", "slow.test:443")
    lab.dns.set("slow.test", drop=True)

    def to(*hosts: str) -> Callable[[Entry], bool]:
        return lambda entry: entry.decision is not None and entry.decision.destination.host.text in hosts

    with gate.tunnel("1.2.3.4:443") as one, gate.tunnel("1.2.3.5:443") as two, gate.connect() as three:
        three.sendall(b"CONNECT slow.test:443 HTTP/1.1\r\nHost: slow.test:443\r\n\r\n")
        wait(lambda: lab.dns.count("slow.test") > 0)
        assert gate.on_thread(lambda: gate.gate.cut(gate.task, Reason.CUT, to("1.2.3.4", "slow.test"))) == 2
        assert one.recv(1) == b""
        assert three.recv(1) == b""
        two.sendall(b"\x00")
        assert read_exactly(two, 1) == b"\x00"


def test_events_of_a_task_go_to_its_own_recorder(serve: Serve) -> None:
    """GAT-11: one gate keeps the records of its tasks apart, and flushes those that took something."""
    gate = serve()
    own = Recording()
    other = GateTask("t2", policy_of(), recorder=own)
    address, _listener = gate.on_thread(lambda: gate.listen(other))
    assert b" 403 " in raw(address, b"CONNECT b.test:1 HTTP/1.1\r\nHost: b.test:1\r\n\r\n")
    wait(lambda: own.flushes > 0)
    assert [event.task for event in own.events] == ["t2"]
    assert b" 403 " in gate.raw(b"CONNECT c.test:1 HTTP/1.1\r\nHost: c.test:1\r\n\r\n")
    assert gate.event().task == "t1"
    assert (len(own.events), own.flushes) == (1, 1)


def test_what_stays_open_beyond_its_phase_is_marked(lab: Lab, serve: Serve) -> None:
    """POL-7: a connection that was open when its task moved on stays open, and its line says so."""
    lab.origin("raw", "1.2.3.4", 443)
    gate = serve("1.2.3.4:443")
    with gate.tunnel("1.2.3.4:443"):
        gate.on_thread(lambda: gate.task.change(phase=Phase.INSTALL))
        with gate.tunnel("1.2.3.4:443"):
            pass
        gate.events(1)
    late, early = gate.events(2)
    assert (late.phase, late.kept) == (Phase.INSTALL, False)
    assert (early.phase, early.kept) == (Phase.RUNTIME, True)


def test_nobody_is_asked_for_a_command_that_asks_no_one(serve: Serve) -> None:
    """ASK-4: two commands of one gate; for the one without --ask the refusal is immediate."""

    class Refuses:
        def __init__(self) -> None:
            self.asked: list[str] = []

        def ask(self, task: str, decision: Decision, answer: Callable[[Decision], None]) -> None:
            self.asked.append(task)
            answer(decision.refuse(Reason.DENY_RULE))

        def known(self, _task: str, _decision: Decision) -> None:
            return None

    asker = Refuses()
    gate = serve(ask=("b.test:1",), asker=asker)
    quiet = GateTask("t2", policy_of(ask=("b.test:1",)), asks=False, recorder=gate.recording)
    address, _listener = gate.on_thread(lambda: gate.listen(quiet))
    request = b"CONNECT b.test:1 HTTP/1.1\r\nHost: b.test:1\r\n\r\n"
    assert b"the command line asks no one" in raw(address, request)
    assert asker.asked == []
    assert b"a rule denies it" in gate.raw(request)
    assert asker.asked == ["t1"]
