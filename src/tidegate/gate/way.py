"""From a plan to a connected socket: ask, resolve, admit, dial, and speak to the upstream proxy where there is one.

Rules of the file:

* The order is the promise (DESIGN rule 3): nothing is resolved before the verdict, and nothing is dialled before
  every address was admitted (ADR-4). What is dialled is an address, never a name.
* A way ends in exactly one call of its traveller, `reached` or `refused`, or is cancelled and ends in none.
  Either may happen before `start` returns.
* Through an upstream proxy the addresses are checked all the same (ADR-5).
* Each step that begins in a turn of its own breaks the traveller, and only it, where it raises.
"""

from __future__ import annotations

from tidegate.gate.dial import Dial, DialError
from tidegate.gate.states import Stage
from tidegate.gate.tool_door import is_tools
from tidegate.model.address_class import AddressClass
from tidegate.model.reason import Reason
from tidegate.model.verdict import Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Callable, Sequence
    from typing import Protocol

    from tidegate.gate.gate import Gate
    from tidegate.gate.resolve import Answer
    from tidegate.gate.task import GateTask, Plan
    from tidegate.gate.upstream import Proxy
    from tidegate.model.decision import Decision

    class Traveller(Protocol):
        """Who wants to get there."""

        def reached(self, decision: Decision, sock: socket, address: str, early: bytes) -> None:
            """A connection stands. `early` came from the server while the upstream proxy was spoken to."""

        def refused(self, decision: Decision, reason: Reason, plan: Plan | None, tried: tuple[str, ...]) -> None:
            """It does not. `plan` is given where its cached refusal fits; `tried` are addresses that failed."""

        def broken(self, error: Exception) -> None:
            """A bug, or a machine that has nothing left: end it."""


class Way:
    """One attempt to reach one destination for one traveller."""

    __slots__ = ("_addresses", "_cancel", "decision", "gate", "plan", "proxy", "stage", "task", "traveller", "tunnel")

    def __init__(self, gate: Gate, task: GateTask, plan: Plan, traveller: Traveller, *, tunnel: bool) -> None:
        self.gate = gate
        self.task = task
        self.plan = plan
        self.decision = plan.decision
        self.traveller = traveller
        self.tunnel = tunnel
        self.stage = Stage.HEAD
        self.proxy: Proxy | None = None
        self._addresses: Sequence[bytes] = ()
        self._cancel: Callable[[], None] | None = None

    def start(self) -> None:
        """Set out."""
        decision = self.task.judge(self.plan, self.gate.surroundings())
        self.decision = decision
        if decision.verdict is Verdict.ALLOW:
            self._allowed()
        elif decision.verdict is Verdict.DENY:
            self._refuse(decision.reason, self.plan)
        else:
            self._ask(decision)

    def adopt(self, decision: Decision, sock: socket, address: str) -> None:
        """Go on with an attempt that is pending already: its decision allows it and its address was admitted."""
        self.decision = decision
        self.stage = Stage.DIALING
        port = decision.destination.port
        dial = Dial(self.gate.reactor, (), port, self.task.policy.limits, self._dialled, (sock, address))
        self._cancel = dial.cancel

    def cancel(self) -> None:
        """Turn back; the traveller is not called any more."""
        cancel, self._cancel = self._cancel, None
        if cancel is not None:
            cancel()

    def _refuse(self, reason: Reason, plan: Plan | None = None, tried: tuple[str, ...] = ()) -> None:
        self._cancel = None
        self.traveller.refused(self.decision, reason, plan, tried)

    def _step(self, step: Callable[[], None]) -> None:
        self.gate.reactor.call(step, self.traveller)

    # A person.

    def _ask(self, decision: Decision) -> None:
        self.stage = Stage.ASKING
        withdraw = self.gate.ask(self.task, decision, lambda answer: self._step(lambda: self._answered(answer)))
        if self.decision is not decision:
            return  # answered before `ask` returned, and gone on: there is nothing to withdraw
        if withdraw is None:
            self._refuse(Reason.NO_APPROVER, self.plan)
        else:
            self._cancel = withdraw

    def _answered(self, decision: Decision) -> None:
        self._cancel = None
        packed = decision.destination.host.packed
        if packed is not None and decision.verdict is Verdict.ALLOW:
            # The question may have been open for long: what was no address of this machine may be one now.
            decision = self.task.admit(decision, (packed,), self.gate.surroundings())
        if decision.verdict is Verdict.ALLOW and self.task.paused:
            decision = decision.refuse(Reason.PAUSED, fix="")
        self.decision = decision
        if decision.verdict is Verdict.ALLOW:
            self._allowed()
        else:
            self._not_admitted()

    # Addresses.

    def _allowed(self) -> None:
        decision, gate = self.decision, self.gate
        limited = self.task.limited(decision, gate.reactor.now, tunnel=self.tunnel)
        if limited is not None:
            self.decision = decision.refuse(limited, fix="")
            self._refuse(limited)
            return
        destination = decision.destination
        tools = self.task.tools
        if tools is not None and is_tools(destination):
            sock = tools.connect()
            if sock is None:
                self._refuse(Reason.UPSTREAM_REFUSED)
            else:
                self.traveller.reached(decision, sock, "", b"")
            return
        if gate.upstream is not None:
            self.proxy = gate.upstream.route(destination, tunnel=self.tunnel)
        packed = destination.host.packed
        if packed is not None:
            self._dial((packed,))
        elif self.proxy is not None and self.task.policy.upstream_resolve == "skip":
            admitted = self.task.admit_unresolved(decision, gate.surroundings())
            self.decision = admitted
            if admitted.allowed:
                self._dial(())
            else:
                self._not_admitted()
        else:
            self._look_up()

    def _look_up(self) -> None:
        self.stage = Stage.RESOLVING
        self._cancel = self.gate.resolver.resolve(
            self.decision.destination.host.text,
            lambda answer: self._step(lambda: self._resolved(answer)),
            self.task.policy.limits.resolve_seconds,
            self.task,
        )

    def _resolved(self, answer: Answer) -> None:
        self._cancel = None
        if answer.reason is not None:
            self._refuse(answer.reason)
            return
        admitted = self.task.admit(self.decision, answer.addresses, self.gate.surroundings())
        self.decision = admitted
        if admitted.allowed:
            self._dial(answer.addresses)
        else:
            self._not_admitted()

    def _not_admitted(self) -> None:
        # Whoever allowed it hears that it leads where no answer may lead (ADR-4).
        decision, asker = self.decision, self.gate.asker
        if decision.grant is not None and asker is not None:
            asker.failed(self.task.id, decision)
        self._refuse(decision.reason)

    # The network.

    def _dial(self, addresses: Sequence[bytes]) -> None:
        self.stage = Stage.DIALING
        self._addresses = addresses
        if self.decision.address_class is AddressClass.OWN:
            self.proxy = None  # another machine's proxy cannot lead to this one
            if self.decision.destination.port in self.gate.marks:
                self.decision = self.decision.refuse(Reason.PROTECTED_PORT, fix="")
                self._refuse(Reason.PROTECTED_PORT)
                return
        proxy = self.proxy
        if proxy is None:
            self._race(addresses, self.decision.destination.port)
        elif proxy.host.packed is not None:
            self._race((proxy.host.packed,), proxy.port)
        else:
            self._cancel = self.gate.resolver.resolve(
                proxy.host.text,
                lambda answer: self._step(lambda: self._proxy_resolved(answer)),
                self.task.policy.limits.resolve_seconds,
                self.task,
            )

    def _proxy_resolved(self, answer: Answer) -> None:
        self._cancel = None
        if answer.reason is not None or self.proxy is None:
            self._refuse(Reason.UPSTREAM_PROXY)
        else:
            self._race(answer.addresses, self.proxy.port)

    def _race(self, addresses: Sequence[bytes], port: int) -> None:
        dial = Dial(self.gate.reactor, addresses, port, self.task.policy.limits, self._dialled)
        if not dial.finished:
            self._cancel = dial.cancel

    def _dialled(self, sock: socket | None, address: str, error: DialError | None) -> None:
        self._step(lambda: self._connected(sock, address, error))

    def _connected(self, sock: socket | None, address: str, error: DialError | None) -> None:
        self._cancel = None
        proxy = self.proxy
        if sock is None:
            reason = error.reason if error is not None else Reason.INTERNAL
            if proxy is not None and reason is not Reason.OUT_OF_RESOURCES:
                self._refuse(Reason.UPSTREAM_PROXY)
            else:
                self._refuse(reason, None, error.tried if error is not None else ())
        elif proxy is None:
            self.traveller.reached(self.decision, sock, address, b"")
        elif proxy.plain and not self.tunnel:
            self.traveller.reached(self.decision, sock, self._checked, b"")
        else:
            from tidegate.gate.handshake import Handshake

            host = self.decision.destination.host
            if proxy.scheme == "socks5" and self._addresses:
                from tidegate.addresses.admission import address_text
                from tidegate.model.host import Host

                first = self._addresses[0]
                host = Host(address_text(first), first)
            handshake = Handshake(self.gate, sock, proxy, host, self.decision.destination, self.task.policy.limits)
            self._cancel = handshake.cancel
            handshake.start(self._through)

    def _through(self, sock: socket | None, early: bytes, reason: Reason | None) -> None:
        self._cancel = None
        if sock is None:
            self._step(lambda: self._refuse(reason or Reason.UPSTREAM_PROXY))
        else:
            self._step(lambda: self.traveller.reached(self.decision, sock, self._checked, early))

    @property
    def _checked(self) -> str:
        if not self._addresses:
            return ""
        from tidegate.addresses.admission import address_text

        return address_text(self._addresses[0])
