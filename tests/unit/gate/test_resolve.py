"""Names to addresses: deadlines, single flight, shares, and what failed how."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

import pytest

from tests.stalls import Stopwatch
from tests.unit.gate.kit import small, wait
from tidegate.gate import resolve
from tidegate.gate.reactor import Reactor
from tidegate.gate.resolve import LOOPBACK, Answer, Resolver, look_up
from tidegate.model.reason import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.lab.api import Lab
    from tests.unit.gate.kit import Serving

    Serve = Callable[..., Serving]


class Loop:
    """A reactor in a thread, and a resolver on it whose look-ups the test releases."""

    def __init__(self) -> None:
        self.reactor = Reactor(time.monotonic)
        self.asked: list[str] = []
        self.release = threading.Event()
        self.answers: list[Answer] = []
        self.resolver = Resolver(self.reactor, self._ask)
        self.thread = threading.Thread(target=self.reactor.run, daemon=True)
        self.thread.start()

    def _ask(self, name: str) -> Answer:
        self.asked.append(name)
        if not name.startswith("quick"):
            self.release.wait(120)
        return Answer((b"\x01\x02\x03\x04",))

    def resolve(self, name: str, seconds: float = 60.0, who: object = None) -> None:
        """Ask on the reactor's thread."""
        self.reactor.post(lambda: self.resolver.resolve(name, self.answers.append, seconds, who) and None)

    def stop(self) -> None:
        """End it, and wait for its threads."""
        self.release.set()
        self.reactor.post(self.resolver.close)
        wait(lambda: self.resolver.threads == 0, lambda: f"{self.resolver.threads} threads stay")
        self.reactor.stop()
        self.thread.join()
        self.reactor.close()


@pytest.fixture
def loop() -> Iterator[Loop]:
    """A resolver on a loop."""
    made = Loop()
    yield made
    made.stop()


def test_those_who_ask_meanwhile_share_one_look_up(loop: Loop) -> None:
    """DESIGN: single flight; the next one asks anew (B22)."""
    for _ in range(5):
        loop.resolve("slow.test")
    wait(lambda: loop.asked == ["slow.test"])
    loop.release.set()
    wait(lambda: len(loop.answers) == 5)
    assert loop.asked == ["slow.test"]
    loop.resolve("slow.test")
    wait(lambda: len(loop.answers) == 6)
    assert loop.asked == ["slow.test"] * 2


def test_waiting_ends_at_the_deadline(loop: Loop) -> None:
    """B65: five seconds at most (here less), whatever the C library does."""
    loop.resolve("slow.test", 0.1)
    wait(lambda: len(loop.answers) == 1)
    assert loop.answers[0].reason is Reason.UPSTREAM_DNS_TIMEOUT


def test_dead_names_starve_no_good_one(loop: Loop) -> None:
    """B65: a hundred dead names of one task leave room for a good name of the same task and of others."""
    for number in range(100):
        loop.resolve(f"dead{number}.test", who="t1")
    loop.resolve("quick.test", who="t1")
    wait(lambda: len(loop.answers) == 1, timeout=50)  # before those that wait are let go


def test_one_task_may_not_hold_every_thread(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    """B65: beyond its share a task waits in its own queue, others do not."""
    monkeypatch.setattr(resolve, "SHARE", 3)
    for number in range(10):
        loop.resolve(f"dead{number}.test", who="greedy")
    loop.resolve("quick.test", who="other")
    wait(lambda: len(loop.answers) == 1)
    assert len([name for name in loop.asked if name.startswith("dead")]) == 3
    loop.release.set()
    wait(lambda: len(loop.answers) == 11)


def test_a_withdrawn_question_is_never_asked(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    """ADR-4: nobody waits, so no packet goes out."""
    monkeypatch.setattr(resolve, "SHARE", 1)
    loop.resolve("dead.test", who="t1")
    wait(lambda: loop.asked == ["dead.test"])
    loop.reactor.post(lambda: loop.resolver.resolve("gone.test", loop.answers.append, 5.0, "t1")())  # noqa: PLW0108 - it withdraws
    loop.release.set()
    wait(lambda: len(loop.answers) == 1)
    loop.resolve("quick.test", who="t1")
    wait(lambda: len(loop.answers) == 2)
    assert "gone.test" not in loop.asked


def test_a_look_up_that_raises_is_a_failure_and_not_a_loss(loop: Loop) -> None:
    """The thread lives, the name fails."""

    def explode(_name: str) -> Answer:
        raise RuntimeError("a bug")

    loop.resolver._ask = explode
    loop.resolve("a.test")
    wait(lambda: len(loop.answers) == 1)
    assert loop.answers[0].reason is Reason.UPSTREAM_DNS_FAILED


def test_localhost_is_loopback_and_asks_nobody(loop: Loop) -> None:
    """RFC 6761: localhost and everything under it; `localhost.test` is a name like any other."""
    for name in ("localhost", "a.localhost", "a.b.localhost"):
        loop.resolve(name)
    wait(lambda: len(loop.answers) == 3)
    assert {answer.addresses for answer in loop.answers} == {LOOPBACK}
    assert loop.resolver.threads == 0
    loop.resolve("quick.localhost.test")
    wait(lambda: len(loop.answers) == 4)
    assert loop.asked == ["quick.localhost.test"]


def test_threads_exist_only_while_there_are_names(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lean start: none before the first name, none after a while without."""
    monkeypatch.setattr(resolve, "IDLE", 0.1)
    assert loop.resolver.threads == 0
    loop.resolve("quick.test")
    wait(lambda: len(loop.answers) == 1)
    wait(lambda: loop.resolver.threads == 0)


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ({"A": ["1.2.3.4"]}, None),
        ({"rcode": "SERVFAIL"}, Reason.UPSTREAM_DNS_FAILED),
        ({"rcode": "NXDOMAIN"}, Reason.UPSTREAM_NXDOMAIN),
        ({"A": []}, Reason.NO_ADDRESS),
        ({"A": ["1.2.3.4"], "truncate": True}, None),
        ({"CNAME": "loop.test"}, Reason.UPSTREAM_DNS_FAILED),
        ({"A": [f"1.2.4.{n}" for n in range(1, 201)]}, None),
    ],
)
def test_failures_are_told_apart(lab: Lab, step: dict[str, object], reason: Reason | None) -> None:
    """B65, GAT-7: unknown, failing, empty; truncated answers are asked for again over TCP."""
    name = "loop.test" if "CNAME" in step else "a.test"
    lab.dns.set(name, **step)
    answer = look_up(name)
    if "CNAME" in step:
        assert answer.reason in {Reason.UPSTREAM_DNS_FAILED, Reason.UPSTREAM_NXDOMAIN, Reason.NO_ADDRESS}
    else:
        assert answer.reason is reason
        assert bool(answer.addresses) is (reason is None)


def test_silence_is_a_timeout(lab: Lab) -> None:
    """B65: EAI_AGAIN after a long wait was no answer."""
    lab.dns.set("a.test", drop=True)
    assert look_up("a.test").reason is Reason.UPSTREAM_DNS_TIMEOUT


def test_names_are_absolute(lab: Lab) -> None:
    """ADR-4: no search list, so one name is one question for each family."""
    lab.etc("resolv.conf", "nameserver 10.77.0.1\nsearch evil.test\noptions ndots:5\n")
    lab.dns.set("a.evil.test", A=["1.2.3.66"])
    assert look_up("a").reason is Reason.UPSTREAM_NXDOMAIN
    assert {query.name for query in lab.dns.queries} == {"a"}


def test_the_hosts_file_counts(lab: Lab) -> None:
    """ADR-4: and no question goes out for it."""
    assert look_up("in-hosts.test").addresses == (b"\x01\x02\x03\xc8",)
    assert lab.dns.queries == []


def test_dns_failures_reach_the_client_as_502(lab: Lab, serve: Serve) -> None:
    """B65, GAT-7: three kinds, three words; a good name among a hundred dead ones is quick."""
    lab.dns.set("servfail.test", rcode="SERVFAIL")
    lab.dns.set("**.dead.test", drop=True)
    lab.dns.set("*.dead.test", drop=True)
    lab.dns.set("good.test", A=["1.2.3.4"])
    lab.origin("banner", "1.2.3.4", 443)
    threads = len(os.listdir("/proc/self/task"))
    gate = serve("*", limits=small(resolve_seconds=2.0))
    for name, word in (("nxdomain.test", b"upstream-dns-nxdomain"), ("servfail.test", b"upstream-dns-servfail")):
        answer = gate.raw(f"CONNECT {name}:443 HTTP/1.1\r\nHost: {name}:443\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 502 ")
        assert word in answer
    socks = [gate.connect() for _ in range(100)]
    for number, sock in enumerate(socks):
        sock.sendall(b"CONNECT n%d.dead.test:443 HTTP/1.1\r\nHost: n%d.dead.test:443\r\n\r\n" % (number, number))
    wait(lambda: gate.gate.resolver.threads >= 100)
    with Stopwatch() as watch:
        gate.tunnel("good.test:443").close()
    assert watch.seconds < 1.5  # and not the two seconds of the dead ones
    assert b"upstream-dns-timeout" in socks[0].recv(1000)
    for sock in socks:
        sock.close()
    gate.gate.post(gate.gate.resolver.close)
    # No thread stays once the C library has given up; the gate's own was there only after the first count.
    wait(lambda: len(os.listdir("/proc/self/task")) <= threads + 1)


def test_clients_that_left_keep_no_name_out(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    """B65: a queue full of names that nobody waits for any more has room."""
    monkeypatch.setattr(resolve, "SHARE", 1)
    monkeypatch.setattr(resolve, "QUEUE", 4)

    def crowd() -> None:
        withdrawals = [loop.resolver.resolve(f"n{number}.test", loop.answers.append) for number in range(5)]
        for withdraw in withdrawals[1:]:
            withdraw()
        loop.resolver.resolve("last.test", loop.answers.append)
        loop.resolver.resolve("last2.test", loop.answers.append)

    loop.reactor.post(crowd)
    wait(lambda: loop.asked == ["n0.test"])
    loop.release.set()
    wait(lambda: len(loop.answers) == 3)
    assert [answer.reason for answer in loop.answers] == [None] * 3
    assert loop.asked == ["n0.test", "last.test", "last2.test"]
