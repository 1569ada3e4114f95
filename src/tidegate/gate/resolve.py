"""Names to addresses: getaddrinfo in a bounded pool of threads, one look-up for all who ask for a name meanwhile.

Rules of the file:

* Only here is a name resolved, and only after its verdict (ADR-4). Names are absolute: a final dot keeps the search
  list out. The hosts file counts and is read first, because the C library does not find `name.` in it.
* `localhost` and everything under it is loopback and is never asked for (RFC 6761 section 6.3).
* Nothing is cached: whoever connects anew resolves anew (B22). Those who ask while the same look-up is under way
  share its answer.
* getaddrinfo cannot be interrupted: waiting ends after a deadline, and its thread comes back when the C library gives
  up. So that this is soon, RES_OPTIONS asks for two tries of two seconds unless the operator set it. There are more
  threads than a burst of dead names needs, and no task may hold all of them (B65).
* Threads are made when the first name is looked up, and leave when there is nothing to do.

Sources: getaddrinfo(3), resolv.conf(5) for RES_OPTIONS, RFC 6761. What it does not do: it speaks no DNS. EAI_AGAIN
stands for SERVFAIL and for silence; how long it took tells them apart.
"""

from __future__ import annotations

import _socket
import _thread
import os
from _queue import Empty, SimpleQueue
from _socket import AF_INET, AF_INET6, SOCK_STREAM, inet_pton
from time import monotonic

from tidegate.gate.hosts import hosts_addresses
from tidegate.model.reason import Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable

    from tidegate.gate.reactor import Reactor
else:
    from _collections import deque  # collections itself brings ten modules

THREADS = 160
SHARE = 128  # of them for one task
QUEUE = 1024  # names waiting for a thread
STACK = 512 * 1024  # bytes, mostly never touched; getaddrinfo with its modules needs less
IDLE = 5.0  # seconds after which a thread with nothing to do leaves
SILENCE = 0.9  # an EAI_AGAIN that took this long was no answer
RES_OPTIONS = "timeout:2 attempts:2"
LOOPBACK = (inet_pton(AF_INET6, "::1"), inet_pton(AF_INET, "127.0.0.1"))

_NO_DATA: int = getattr(_socket, "EAI_NODATA", -5)


class Answer:
    """Packed addresses in the order to try them, or why there are none."""

    __slots__ = ("addresses", "reason")

    def __init__(self, addresses: tuple[bytes, ...], reason: Reason | None = None) -> None:
        self.addresses = addresses
        self.reason = reason


def look_up(name: str) -> Answer:
    """Ask the hosts file, then the C library, for an absolute name. Blocks."""
    listed = hosts_addresses(name)
    if listed:
        return Answer(listed)
    began = monotonic()
    try:
        found = _socket.getaddrinfo(f"{name}.", None, 0, SOCK_STREAM)
    except _socket.gaierror as error:
        if error.errno == _NO_DATA:
            return Answer((), Reason.NO_ADDRESS)
        if error.errno == _socket.EAI_NONAME:
            return Answer((), Reason.UPSTREAM_NXDOMAIN)
        silent = error.errno == _socket.EAI_AGAIN and monotonic() - began >= SILENCE
        return Answer((), Reason.UPSTREAM_DNS_TIMEOUT if silent else Reason.UPSTREAM_DNS_FAILED)
    addresses: dict[bytes, None] = {}
    for family, _, _, _, sockaddr in found:
        if family in {AF_INET, AF_INET6}:
            addresses[inet_pton(family, str(sockaddr[0]).partition("%")[0])] = None
    return Answer(tuple(addresses), None if addresses else Reason.NO_ADDRESS)


class _Lookup:
    """One name under way, and who waits for it."""

    __slots__ = ("name", "queued", "waiters", "who")

    def __init__(self, name: str, who: object) -> None:
        self.name = name
        self.who = who
        self.waiters: list[Callable[[Answer], None]] = []
        self.queued = True


class Resolver:
    """Resolves names for the gate. Everything but the work itself happens on the gate's thread."""

    __slots__ = ("_ask", "_busy", "_holds", "_names", "_queue", "_reactor", "_work", "outcomes", "threads")

    def __init__(self, reactor: Reactor, ask: Callable[[str], Answer] = look_up) -> None:
        self.threads = 0  # alive, idle ones included
        self.outcomes: dict[str, int] = {}  # of look-ups that were made, by the name of their reason in metrics
        self._reactor = reactor
        self._ask = ask
        self._names: dict[str, _Lookup] = {}
        self._queue: deque[_Lookup] = deque()
        self._work: SimpleQueue[_Lookup | None] = SimpleQueue()
        self._busy = 0
        self._holds: dict[object, int] = {}  # threads at work for each task

    def resolve(
        self, name: str, done: Callable[[Answer], None], seconds: float = 5.0, who: object = None
    ) -> Callable[[], None]:
        """Look up a canonical name for the task `who`; `done` is called once, in a later turn.

        Returns a callable that withdraws the question.
        """
        if name == "localhost" or name.endswith(".localhost"):
            return self._reactor.after(0.0, lambda: done(Answer(LOOPBACK))).cancel
        lookup = self._names.get(name)
        if lookup is None:
            if len(self._queue) >= QUEUE:
                self._prune()
            if len(self._queue) >= QUEUE:
                return self._reactor.after(0.0, lambda: done(Answer((), Reason.OUT_OF_RESOURCES))).cancel
            lookup = self._names[name] = _Lookup(name, who)
            self._queue.append(lookup)
        waiters = lookup.waiters
        timer = self._reactor.after(seconds, lambda: expire())  # noqa: PLW0108 - defined below

        def answered(answer: Answer) -> None:
            timer.cancel()
            done(answer)

        def withdraw() -> None:
            timer.cancel()
            if answered in waiters:
                waiters.remove(answered)

        def expire() -> None:
            withdraw()
            if not waiters:
                self._forget(lookup)
            done(Answer((), Reason.UPSTREAM_DNS_TIMEOUT))

        waiters.append(answered)
        if lookup.queued:
            self._start()
        return withdraw

    def _start(self) -> None:
        # Names whose task has its share of threads stay in the queue, in order.
        held: list[_Lookup] = []
        while self._queue and self._busy < THREADS:
            lookup = self._queue.popleft()
            if not lookup.waiters:  # nobody waits any more: no question goes out
                self._forget(lookup)
                continue
            holds = self._holds.get(lookup.who, 0)
            if holds >= SHARE:
                held.append(lookup)
                continue
            if self._busy >= self.threads and not self._add_thread():
                self._answered(lookup, Answer((), Reason.OUT_OF_RESOURCES), counted=False)
                continue
            lookup.queued = False
            self._holds[lookup.who] = holds + 1
            self._busy += 1
            self._work.put(lookup)
        self._queue.extendleft(reversed(held))

    def _prune(self) -> None:
        # Clients that left must not keep names of others out.
        for lookup in self._queue:
            if not lookup.waiters:
                self._forget(lookup)
        self._queue = deque(lookup for lookup in self._queue if lookup.waiters)

    def _add_thread(self) -> bool:
        os.environ.setdefault("RES_OPTIONS", RES_OPTIONS)
        before = _thread.stack_size(STACK)
        try:
            _thread.start_new_thread(self._serve, ())
        except RuntimeError:  # this machine or this user has no more
            return self.threads > 0
        finally:
            _thread.stack_size(before)
        self.threads += 1
        return True

    def _serve(self) -> None:
        # In a thread of the pool. Touches nothing of the gate but `post`.
        post = self._reactor.post
        while True:
            try:
                lookup = self._work.get(timeout=IDLE)
            except Empty:
                lookup = None
            if lookup is None:
                try:
                    post(self._thread_left)
                except OSError:
                    return  # the gate is closed
                return
            try:
                answer = self._ask(lookup.name)
            except Exception:  # noqa: BLE001 - there is nobody to raise to here; the name fails, nothing else
                answer = Answer((), Reason.UPSTREAM_DNS_FAILED)
            try:
                post(lambda lookup=lookup, answer=answer: self._answered(lookup, answer))  # type: ignore[misc]
            except OSError:
                return

    def _thread_left(self) -> None:
        self.threads -= 1
        if self._busy > self.threads:  # work came while the last idle thread was on its way out
            self._add_thread()

    def _answered(self, lookup: _Lookup, answer: Answer, *, counted: bool = True) -> None:
        if counted:
            outcome = answer.reason.metric if answer.reason is not None else "answered"
            self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
            self._busy -= 1
            holds = self._holds[lookup.who] - 1
            if holds:
                self._holds[lookup.who] = holds
            else:
                del self._holds[lookup.who]
        self._forget(lookup)
        waiters, lookup.waiters = lookup.waiters, []
        for waiter in waiters:
            waiter(answer)
        if counted:
            self._start()

    def _forget(self, lookup: _Lookup) -> None:
        if self._names.get(lookup.name) is lookup:
            del self._names[lookup.name]

    def close(self) -> None:
        """Answer nobody any more and let the threads go; those inside the C library follow when it gives up."""
        for lookup in self._names.values():
            lookup.waiters = []
        self._names.clear()
        self._queue.clear()
        for _ in range(self.threads):
            self._work.put(None)
