"""Judges what a client says first inside its tunnel, before the server hears a byte of it (GAT-9).

Rules of the file:

* A tunnel to a name carries TLS for that name, clear HTTP for that host, or something that is neither. The first two
  are compared with the CONNECT; what is neither is recorded, and refused under `tls: strict`.
* A tunnel to a literal may name a host in its TLS; then that name, at that port, needs to be allowed too.
* A first request in clear text that has a secret's stand-in in its head is refused (INS-5).
* What is held is bounded in bytes (wire/opening.py) and, once it has begun, in time (`header_seconds`).
* A client that is cut is told so in its own protocol.

What this does not see: a Host inside TLS that differs from the SNI, and requests after the first one.
"""

from __future__ import annotations

from tidegate.gate.reactor import ENDED
from tidegate.model.destination import Destination
from tidegate.model.host import HostError, canonical_host
from tidegate.model.reason import Reason
from tidegate.model.verdict import Verdict
from tidegate.wire.client_hello import refusal_alert
from tidegate.wire.errors import WireError
from tidegate.wire.first_bytes import Speaks
from tidegate.wire.grammar import TOKEN
from tidegate.wire.opening import Opening, OpeningReader, opening_verdict
from tidegate.wire.refusal import refusal_response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.gate.reactor import Timer
    from tidegate.gate.tunnel import Tunnel
    from tidegate.model.decision import Decision

ROOM = 1 << 14  # read at once while first bytes are held
# RFC 9110 section 16.1.1 and the IANA registry it made, and what caches add.
METHODS = (
    b"GET HEAD POST PUT DELETE CONNECT OPTIONS TRACE PATCH PRI ACL BASELINE-CONTROL BIND CHECKIN CHECKOUT COPY LABEL "
    b"LINK LOCK MERGE MKACTIVITY MKCALENDAR MKCOL MKREDIRECTREF MKWORKSPACE MOVE ORDERPATCH PROPFIND PROPPATCH PURGE "
    b"QUERY REBIND REPORT SEARCH UNBIND UNCHECKOUT UNLINK UNLOCK UPDATE UPDATEREDIRECTREF VERSION-CONTROL"
).split()
_DETAIL = {
    Speaks.HTTP: "clear-http",
    Speaks.HTTP2: "clear-http2",
    Speaks.SSH: "ssh",
    Speaks.OTHER: "other",
}


# First byte -> whether it alone makes the reader answer OTHER, so that nothing behind it matters.
_decided: dict[int, bool] = {}


def decided(first: int) -> bool:
    """Whether a client that begins with this byte speaks neither TLS nor HTTP nor SSH, whatever follows.

    Making a reader is a good part of what a short tunnel costs; this asks one once for each of 256 bytes.
    """
    answer = _decided.get(first)
    if answer is None:
        try:
            opening = OpeningReader().feed(bytes((first,)))
        except WireError:
            opening = None
        answer = _decided[first] = opening is not None and opening.speaks is Speaks.OTHER
    return answer


class Judge:
    """Reads the first bytes of one tunnel's client, then lets them go or cuts the tunnel."""

    __slots__ = ("_deadline", "_passed", "_reader", "_tunnel", "_withdraw", "waiting")

    room = ROOM

    def __init__(self, tunnel: Tunnel) -> None:
        self._tunnel = tunnel
        self._reader: OpeningReader | None = None
        self._passed = 0  # how much of what the reader holds the server has already
        self._deadline: Timer | None = None
        self._withdraw: Callable[[], None] | None = None
        self.waiting = False  # a person is asked about the name in the TLS

    def feed(self, data: bytes) -> None:
        """Take bytes of the client."""
        tunnel = self._tunnel
        reader = self._reader
        limits = tunnel.entry.task.policy.limits
        if reader is None:
            if decided(data[0]) and tunnel.entry.task.policy.tls != "strict":
                tunnel.entry.detail = "other"
                tunnel.pass_on(data)
                return
            reader = self._reader = OpeningReader(limits)
        try:
            opening = reader.feed(data)
        except WireError as error:
            self._cut(error.reason, reader.speaks_so_far)
            return
        if opening is not None:
            self._judge(opening)
        elif not self._let_word_pass(reader) and self._deadline is None:
            self._deadline = tunnel.gate.reactor.after(limits.header_seconds, self._too_slow, tunnel)

    def _let_word_pass(self, reader: OpeningReader) -> bool:
        # `ping` without a line end could be the beginning of a request with a method nobody knows. Its client may be
        # waiting for an answer, so the word goes, and the rest is held as soon as there is one: the Host comes later.
        held = reader.held
        if reader.speaks_so_far is not Speaks.HTTP or held.translate(None, TOKEN):
            return False
        word = bytes(held)
        if any(method.startswith(word) for method in METHODS):
            return False
        self._send(reader)
        return True

    def _send(self, reader: OpeningReader) -> None:
        passed, self._passed = self._passed, len(reader.held)
        self._tunnel.up.offer(bytes(reader.held[passed:]))

    def ended(self) -> None:
        """The client ended before its first bytes were whole: nothing that is not judged may pass."""
        reader = self._reader
        if reader is not None and len(reader.held) > self._passed:
            self._unfinished(reader)
        if self._tunnel.judge is self:
            self.cancel()
            self._tunnel.pass_end()
        else:
            self._tunnel.up.pull(ENDED)

    def cancel(self) -> None:
        """The tunnel ends, or the judgement did."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if self._withdraw is not None:
            self._withdraw()
            self._withdraw = None

    def _judge(self, opening: Opening) -> None:
        tunnel = self._tunnel
        entry = tunnel.entry
        decision = entry.decision
        assert decision is not None, "a tunnel has a decision"
        hello = opening.hello
        if hello is not None:
            entry.detail = "tls" if hello.sni is not None else "tls-no-sni"
        else:
            entry.detail = _DETAIL.get(opening.speaks, "other")
        strict = entry.task.policy.tls == "strict"
        reason = opening_verdict(opening, decision.destination, strict=strict)
        if reason is None and opening.speaks is Speaks.HTTP and self._has_stand_in(decision.destination):
            reason = Reason.SECRET_MISDIRECTED
        if reason is not None:
            self._cut(reason, opening.speaks)
        elif hello is not None and hello.sni is not None and decision.destination.host.is_literal:
            self._ask_name(hello.sni, decision.destination.port)
        else:
            self._pass()

    def _has_stand_in(self, destination: Destination) -> bool:
        # B122: of a secret, in a first request that travels in clear text.
        secrets, reader = self._tunnel.entry.task.secrets, self._reader
        if secrets is None or reader is None:
            return False
        line, *rest = bytes(reader.held).split(b"\r\n")
        fields = [(name, value.strip()) for name, _, value in (one.partition(b":") for one in rest)]
        try:
            secrets.swap(destination.host.text, destination.port, line, fields, tls=False)
        except WireError:
            return True
        return False

    def _pass(self) -> None:
        self.cancel()
        reader = self._reader
        self._tunnel.pass_on(bytes(reader.held[self._passed :]) if reader is not None else b"")

    def _ask_name(self, sni: str, port: int) -> None:
        # A CONNECT to a literal whose TLS names a host: that name needs to be allowed at that port too.
        tunnel = self._tunnel
        try:
            host = canonical_host(sni)
        except HostError:
            self._cut(Reason.BAD_TLS, Speaks.TLS)
            return
        task = tunnel.entry.task
        decision = task.plan(Destination(host, port)).decision
        if decision.verdict is Verdict.ALLOW:
            self._pass()
            return
        if decision.verdict is Verdict.ASK:
            self.waiting = True
            tunnel.entry.also = decision
            withdraw = tunnel.gate.ask(task, decision, self._answered)
            if not self.waiting:
                return  # answered before `ask` returned
            if withdraw is not None:
                self._withdraw = withdraw
                return
            self.waiting = False
        if decision.verdict is Verdict.ASK:
            decision = decision.replace(reason=Reason.NO_APPROVER)
        self._name_refused(decision)

    def _answered(self, decision: Decision) -> None:
        self._withdraw = None
        self.waiting = False
        if decision.verdict is Verdict.ALLOW:
            self._tunnel.also_under(decision)
            self._pass()
            self._tunnel.again(self._tunnel.up)  # what came meanwhile was told of once
        else:
            self._name_refused(decision)

    def _name_refused(self, decision: Decision) -> None:
        tunnel = self._tunnel
        address = tunnel.entry.address
        tunnel.entry.decision = decision.replace(address=address) if address else decision
        self._cut(decision.reason, Speaks.TLS)

    def _too_slow(self) -> None:
        self._deadline = None
        reader = self._reader
        if reader is not None and not self.waiting:
            self._unfinished(reader)

    def _unfinished(self, reader: OpeningReader) -> None:
        speaks = reader.speaks_so_far
        if speaks is Speaks.TLS:
            self._cut(Reason.BAD_TLS, speaks)
        elif speaks is Speaks.HTTP:
            self._cut(Reason.HEADER_TIMEOUT, speaks)
        else:
            self._judge(Opening(Speaks.OTHER))

    def _cut(self, reason: Reason, speaks: Speaks | None) -> None:
        tunnel = self._tunnel
        decision = tunnel.entry.decision
        self.cancel()
        reply = b""
        if speaks is Speaks.TLS:
            reply = refusal_alert(reason)
        elif speaks is Speaks.SSH:
            from tidegate.wire.ssh import ssh_disconnect

            reply = ssh_disconnect(reason.sentence, banner=not tunnel.down.moved)
        elif speaks is Speaks.HTTP and not tunnel.down.moved:
            line = reason.sentence if decision is None else decision.refuse(reason, fix="").sentence()
            reply = refusal_response(reason, line)
            tunnel.entry.status = reason.status
        if decision is not None and decision.verdict is Verdict.ALLOW:
            tunnel.entry.decision = decision.refuse(reason, fix="")
        tunnel.refuse(reason, reply)
