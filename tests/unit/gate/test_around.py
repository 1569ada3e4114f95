"""Attempts around the gates of many tasks: by real rules of nftables, from the kernel's logs to the right journal."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.first_network import in_first_network
from tests.owners import owning
from tests.unit.gate.kit import policy_of, wait
from tests.unit.gate.test_identity import ALICE, BOB
from tidegate.gate.around import PREFIX, Around
from tidegate.gate.gate import GateTask
from tidegate.holds import attempt_log
from tidegate.model.reason import Reason
from tidegate.wire.attempt import Attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.lab.api import Lab
    from tests.unit.gate.kit import Serving
    from tidegate.model.event import Event

    Serve = Callable[..., Serving]

GROUP = 4022
TABLE = """table inet around {
 chain out { type filter hook output priority 0;
  meta skuid 41000-41999 %s
  meta skuid 41000-41999 meta l4proto tcp reject with tcp reset
  meta skuid 41000-41999 reject with icmpx type admin-prohibited
 }
}
"""
ALL_NETWORKS = "/proc/sys/net/netfilter/nf_log_all_netns"


def load(log: str) -> None:
    """Load a table that logs like this."""
    if shutil.which("nft") is None:
        pytest.skip("nft is not here")
    if os.geteuid() != 0:
        pytest.skip("only root has sockets of other users")
    subprocess.run(["nft", "-f", "-"], input=TABLE % log, text=True, check=True)


def remove() -> None:
    """Remove it."""
    subprocess.run(["nft", "delete", "table", "inet", "around"], check=True)


class Tried:
    """A gate with two tasks, and a log of what they try around it."""

    def __init__(self, serve: Serve) -> None:
        self.gate = serve()
        self.around = Around(self.gate.gate)
        self.tasks = {uid: GateTask(name, policy_of("*")) for uid, name in ((ALICE, "alice"), (BOB, "bob"))}
        for uid, task in self.tasks.items():
            self.gate.on_thread(lambda uid=uid, task=task: self.around.seat(uid, task))

    def tcp(self, uid: int, address: str, port: int) -> None:
        """A user connects, and is refused at once."""
        with owning(uid):
            sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        sock.settimeout(10)
        with sock:
            assert sock.connect_ex((address, port)), "it was not refused"

    def udp(self, uid: int, address: str, port: int) -> None:
        """A user sends a datagram, which is refused at once."""
        with owning(uid):
            sock = socket.socket(type=socket.SOCK_DGRAM)
        with sock:
            try:
                sock.sendto(b"x", (address, port))
            except OSError:
                return

    def told(self, count: int) -> list[Event]:
        """Wait for so many lines."""
        return self.gate.events(count)


def try_everything(tried: Tried) -> None:
    """What is told is the same whichever log it came from."""
    tried.tcp(ALICE, "1.2.3.4", 443)
    tried.udp(BOB, "1.2.3.4", 8443)
    events = tried.told(2)
    assert [(one.task, one.host, one.port, one.method, one.reason) for one in events] == [
        ("alice", "1.2.3.4", 443, "TCP", Reason.AROUND_GATE),
        ("bob", "1.2.3.4", 8443, "UDP", Reason.NOT_TCP),
    ]
    for _ in range(5):
        tried.tcp(ALICE, "1.2.3.4", 443)  # within five seconds: a count of the next line
    for _ in range(3):
        tried.udp(ALICE, "1.2.3.4", 53)
        tried.udp(BOB, "9.9.9.9", 53)
    events = tried.told(4)
    assert sorted((one.task, one.host, one.reason.word) for one in events[2:]) == [
        ("alice", "DNS lookups (port 53)", "dns-around-the-gate"),
        ("bob", "DNS lookups (port 53)", "dns-around-the-gate"),
    ]
    tried.tcp(41003, "1.2.3.4", 443)
    wait(lambda: tried.around.unclaimed > 0)  # a user without a task is nobody's line
    tried.gate.on_thread(lambda: tried.around.leave(ALICE))
    last = tried.told(5)[4]
    assert (last.task, last.host, last.count) == ("alice", "1.2.3.4", 5)
    tried.tcp(ALICE, "1.2.3.4", 443)
    tried.gate.on_thread(tried.around.close)
    assert len(tried.gate.recording.events) == 5


@pytest.mark.usefixtures("isolated")
def test_from_nflog(lab: Lab, serve: Serve) -> None:
    """JRN-3: address and port, once in five seconds for the same, look-ups once, each in its own task's journal."""
    lab.origin("raw", "1.2.3.4", 443)
    load(f'log group {GROUP} prefix "{PREFIX}"')
    try:
        tried = Tried(serve)
        kind, fd = attempt_log.open_attempts(GROUP)
        assert kind == attempt_log.NFLOG
        tried.gate.on_thread(lambda: tried.around.read_nflog(fd))
        try_everything(tried)
    finally:
        remove()


@pytest.fixture
def kernel_log() -> Iterator[int]:
    """The kernel's log, in which the rules of this network write as those of the machine's first one do."""
    try:
        fd = os.open(attempt_log.KMSG, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        pytest.skip(f"the kernel's log cannot be read: {error}")
    before = in_first_network("cat", ALL_NETWORKS)
    in_first_network("sh", "-c", f"echo 1 > {ALL_NETWORKS}")
    os.lseek(fd, 0, os.SEEK_END)
    yield fd
    in_first_network("sh", "-c", f"echo {before} > {ALL_NETWORKS}")


@pytest.mark.usefixtures("isolated")
def test_from_the_kernels_own_log(lab: Lab, serve: Serve, kernel_log: int) -> None:
    """JRN-3: the same where there is no nflog, and nothing that a program writes there counts."""
    lab.origin("raw", "1.2.3.4", 443)
    prefix = f"tidegate-test-{os.getpid()} "
    load(f'log prefix "{prefix}" flags skuid')
    try:
        tried = Tried(serve)
        tried.around._prefix = prefix
        tried.gate.on_thread(lambda: tried.around.read_kernel_log(kernel_log))
        with open("/dev/kmsg", "w", encoding="ascii") as forged:
            forged.write(f"<4>{prefix}IN= OUT=lo SRC=1.1.1.1 DST=6.6.6.6 PROTO=TCP SPT=1 DPT=6 UID={BOB} GID={BOB}")
        try_everything(tried)
        assert all(event.host != "6.6.6.6" for event in tried.gate.recording.events)
    finally:
        remove()


def test_another_rule_of_the_same_group_is_not_ours(serve: Serve) -> None:
    """JRN-3: what has another prefix was not turned away by the hold."""
    tried = Tried(serve)
    address = bytes((1, 2, 3, 4))
    for prefix in ("", "other ", PREFIX):
        attempt = Attempt("tcp", address, 443, ALICE, prefix)
        tried.gate.on_thread(lambda attempt=attempt: tried.around._take_from_nflog(attempt))
    assert len(tried.gate.recording.events) == 1


def test_look_ups_are_told_of_once_for_a_task_not_for_each_of_its_commands(serve: Serve) -> None:
    """JRN-3: two users, one task; the next task of the same user is another."""
    tried = Tried(serve)
    second = GateTask("alice", policy_of())
    tried.gate.on_thread(lambda: tried.around.seat(41003, second))

    def look_up(uid: int) -> None:
        tried.gate.on_thread(lambda: tried.around.take(Attempt("tcp", bytes(4), 53, uid, PREFIX)))

    for uid in (ALICE, 41003, ALICE):
        look_up(uid)
    tried.gate.on_thread(lambda: tried.around.leave(ALICE))
    look_up(41003)
    assert len(tried.gate.recording.events) == 1
    tried.gate.on_thread(lambda: tried.around.leave(41003))
    tried.gate.on_thread(lambda: tried.around.seat(41003, GateTask("next", policy_of())))
    look_up(41003)
    assert [event.task for event in tried.gate.recording.events] == ["alice", "next"]


def test_a_user_is_one_tasks(serve: Serve) -> None:
    """HLD-3: who has a seat cannot be somebody else's too; who leaves twice is gone."""
    tried = Tried(serve)
    with pytest.raises(ValueError, match=str(ALICE)):
        tried.around.seat(ALICE, tried.tasks[BOB])
    tried.gate.on_thread(lambda: tried.around.leave(ALICE))
    tried.gate.on_thread(lambda: tried.around.leave(ALICE))
    tried.gate.on_thread(lambda: tried.around.seat(ALICE, tried.tasks[BOB]))
