"""The loop: descriptors, timers, other threads, and handlers that break."""

from __future__ import annotations

import itertools
import os
import select
import socket
import threading
import time

import pytest

from tidegate.gate.outlet import Outlet
from tidegate.gate.reactor import READ, TOGETHER, Reactor, remaining


class Handler:
    """Keeps what it is told; raises where asked."""

    def __init__(self, reactor: Reactor, *, raises: bool = False) -> None:
        self.reactor = reactor
        self.raises = raises
        self.told: list[tuple[int, int]] = []
        self.errors: list[Exception] = []

    def ready(self, fd: int, mask: int) -> None:
        """Keep it."""
        self.told.append((fd, mask))
        if self.raises:
            raise ValueError("a bug")

    def broken(self, error: Exception) -> None:
        """Keep it."""
        self.errors.append(error)


def test_an_edge_is_told_once_and_rewatch_tells_it_again() -> None:
    """epoll(7): edge-triggered; what is unread is not told again until it is watched anew."""
    reactor = Reactor(time.monotonic)
    read, write = os.pipe2(os.O_NONBLOCK)
    handler = Handler(reactor)
    reactor.watch(read, handler)
    os.write(write, b"x")
    reactor.after(0.05, lambda: reactor.rewatch(read, READ))
    reactor.after(0.1, reactor.stop)
    reactor.run()
    assert len(handler.told) == 2
    reactor.forget(read)
    os.write(write, b"y")
    reactor.after(0.02, reactor.stop)
    reactor.run()
    assert len(handler.told) == 2
    os.close(read)
    os.close(write)
    reactor.close()


def test_a_handler_that_breaks_breaks_alone() -> None:
    """No exception ends the loop; the owner is told, and the others are served."""
    faults: list[Exception] = []
    reactor = Reactor(time.monotonic, faults.append)
    pipes = [os.pipe2(os.O_NONBLOCK) for _ in range(2)]
    bad, good = Handler(reactor, raises=True), Handler(reactor)
    for (read, write), handler in zip(pipes, (bad, good), strict=True):
        reactor.watch(read, handler)
        os.write(write, b"x")
    reactor.after(0.0, lambda: 1 // 0, bad)
    reactor.after(0.05, reactor.stop)
    reactor.run()
    assert [type(error) for error in bad.errors] == [ValueError, ZeroDivisionError]
    assert len(good.told) == 1
    assert len(faults) == 2
    for pair in pipes:
        for fd in pair:
            os.close(fd)
    reactor.close()


def test_timers_end_in_order_and_cancel_is_final() -> None:
    """Lengths are mixed; what was cancelled, also by another timer, does not run.

    The clock goes on by a hundredth of a second a reading: where a machine is late by more than lies between two timers
    of different lengths, their order is not promised.
    """
    readings = itertools.count()
    reactor = Reactor(lambda: next(readings) / 100)
    order: list[str] = []
    reactor.after(0.06, lambda: order.append("late"))
    reactor.after(0.03, lambda: order.append("early"))
    gone = reactor.after(0.03, lambda: order.append("gone"))
    gone.cancel()
    gone.cancel()
    later = reactor.after(0.1, lambda: order.append("never"))
    reactor.after(0.05, later.cancel)
    reactor.after(0.12, reactor.stop)
    assert reactor.timers == 5
    reactor.run()
    assert order == ["early", "late"]
    assert reactor.timers == 0
    reactor.close()


def test_a_timer_may_arm_another() -> None:
    """Also of the same length, without ending in the same turn for ever."""
    reactor = Reactor(time.monotonic)
    ticks: list[float] = []

    def tick() -> None:
        ticks.append(reactor.now)
        if len(ticks) < 3:
            reactor.after(0.02, tick)
        else:
            reactor.stop()

    reactor.after(0.02, tick)
    reactor.run()
    assert len(ticks) == 3
    assert ticks[2] - ticks[0] >= 0.04
    reactor.close()


def test_post_and_stop_come_from_other_threads() -> None:
    """What is posted runs on the loop's thread, in order, also from inside a posted call."""
    reactor = Reactor(time.monotonic)
    seen: list[tuple[int, int]] = []
    loop = threading.Thread(target=reactor.run)
    loop.start()

    def note(number: int) -> None:
        seen.append((number, threading.get_ident()))
        if number == 99:
            reactor.post(lambda: note(100))
        if number == 100:
            reactor.stop()

    for number in range(100):
        reactor.post(lambda number=number: note(number))  # type: ignore[misc]
    loop.join(5)
    assert [number for number, _ in seen] == list(range(101))
    assert {ident for _, ident in seen} == {loop.ident}
    reactor.close()


def test_again_runs_in_the_next_turn_and_only_while_it_is_watched() -> None:
    """A busy handler goes on without a new edge; one that was replaced does not."""
    reactor = Reactor(time.monotonic)
    read, write = os.pipe2(os.O_NONBLOCK)
    handler, other = Handler(reactor), Handler(reactor)
    reactor.watch(read, handler)
    reactor.again(handler, read, 1)
    reactor.again(other, read, 1)
    turns = [0]

    def turned() -> None:
        turns[0] += 1
        reactor.stop()

    reactor.turned = turned
    reactor.run()
    assert handler.told == [(read, 1)]
    assert other.told == []
    assert turns == [1]
    os.close(read)
    os.close(write)
    reactor.close()


def test_a_closed_loop_is_not_woken() -> None:
    """A thread that comes late gets an error, and writes into no descriptor that has the number now."""
    reactor = Reactor(time.monotonic)
    reactor.close()
    with pytest.raises(OSError, match="closed"):
        reactor.post(lambda: None)


def test_a_call_breaks_who_it_was_made_for() -> None:
    """What raises outside of an event has an owner all the same."""
    faults: list[Exception] = []
    reactor = Reactor(time.monotonic, faults.append)
    handler = Handler(reactor)

    def bug() -> None:
        raise ValueError("a bug")

    reactor.call(bug, handler)
    assert [str(error) for error in handler.errors] == ["a bug"]
    assert faults == handler.errors
    reactor.close()


@pytest.mark.parametrize(
    ("left", "rounded"), [(0.0, 1.0), (0.001, 1.0), (1.0, 2.0), (8.0, 9.0), (15.5, 16.0), (16.0, 16.0), (99.0, 16.0)]
)
def test_what_is_left_of_a_clock_has_few_lengths(left: float, rounded: float) -> None:
    """Sixteen at most, never shorter than what is left of the clock, never longer than the clock."""
    assert remaining(left, 16.0) == rounded


@pytest.mark.parametrize("posts", [True, False])
def test_nothing_is_lost_where_a_wake_up_cannot_be_written(posts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was posted runs, in few turns, and a stop ends the loop, though the kernel takes no wake-up (HLD-7)."""

    def refuse(_fd: int, _value: int) -> None:
        raise OSError(12, "Cannot allocate memory")

    reactor = Reactor(time.monotonic)
    ran, turns = threading.Event(), [0]

    def turned() -> None:
        turns[0] += 1

    reactor.turned = turned
    loop = threading.Thread(target=reactor.run)
    loop.start()
    monkeypatch.setattr(os, "eventfd_write", refuse)
    if posts:
        reactor.post(ran.set)
        assert ran.wait(20)
    reactor.stop()
    loop.join(20)
    assert not loop.is_alive()
    assert turns[0] < 50  # it waits, and does not spin
    reactor.close()


@pytest.mark.parametrize("handlers", [1, 2, TOGETHER + 3])
def test_what_is_posted_in_a_turn_goes_out_in_it(handlers: int) -> None:
    """GAT-5: who is alone sends at once; of several, all have sent before the next turn, some before it ends."""
    reactor = Reactor(time.monotonic)
    pairs = [socket.socketpair() for _ in range(handlers)]
    seen: list[tuple[int, int]] = []  # when each handler has had its turn: what has arrived for all, and in which turn

    def arrived() -> int:
        return sum(far.recv(1, socket.MSG_PEEK) == b"x" for _, far in pairs if select.select([far], [], [], 0)[0])

    class Posting(Handler):
        def ready(self, fd: int, _mask: int) -> None:
            os.read(fd, 10)
            outlets[fd].post(b"x")
            seen.append((arrived(), turns[0]))

    turns = [0]

    def turned() -> None:
        assert arrived() == len(seen)
        turns[0] += 1
        if len(seen) == handlers:
            reactor.stop()

    reactor.turned = turned
    outlets = {}
    for near, far in pairs:
        near.setblocking(False)
        outlets[near.fileno()] = Outlet(reactor, near)
        reactor.watch(near.fileno(), Posting(reactor))
        far.send(b"go")
    reactor.run()
    assert seen[0][0] == (1 if handlers == 1 else 0)
    assert max(count for count, _ in seen) == (TOGETHER if handlers > TOGETHER else 1 if handlers == 1 else 0)
    for pair in pairs:
        for sock in pair:
            sock.close()
    reactor.close()
