"""The resolver of a task: one query in, one answer out, and never a packet anywhere else (HLD-6, ADR-4).

Rules of the file:

* A name some port of which could be allowed or asked has a synthetic address; any other does not exist. Nothing is
  looked up outside and nobody is asked: that comes with the connection, if one comes.
* What an answer says is decided by the policy alone, so the answers tell a task nothing that the policy does not.
* `localhost`, all under it and the task's own host names are the task's own loopback (RFC 6761 section 6.3).
* Only A, AAAA, and PTR of addresses given before, have data. HTTPS and SVCB never do, so that nobody tries ECH or QUIC.
* A refused look-up is recorded once for all the types that its client asks for together.

What it does not do: it knows no sockets (dns_sockets.py) and keeps no answers.
"""

from __future__ import annotations

from tidegate.gate.budget import Budget
from tidegate.gate.record import Entry
from tidegate.gate.tool_door import is_tools, tools_decision
from tidegate.model.destination import Destination
from tidegate.model.reason import Reason
from tidegate.model.tools import NAME as TOOLS
from tidegate.model.verdict import How
from tidegate.policy.decide import decide
from tidegate.policy.reach import could_reach
from tidegate.wire import dns, dns_answer
from tidegate.wire.errors import WireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.gate.gate import Gate
    from tidegate.gate.synthetic import Synthetic
    from tidegate.gate.task import GateTask
    from tidegate.model.decision import Decision
    from tidegate.model.host import Host
    from tidegate.wire.dns import Query

BURST = 2048  # queries at once; what a build with everything in parallel asks for
RATE = 1000.0  # a second in the long run: some 5 % of a processor
TTL = 60  # seconds; an address stays what it is, but a rule may go
METHOD = "DNS"  # what the journal has in the place of an HTTP method
_LOOPBACK = {dns.A: b"\x7f\0\0\1", dns.AAAA: bytes(15) + b"\1"}
_LOOPBACKS = frozenset(_LOOPBACK.values())
_TRANSFERS = frozenset({dns.AXFR, dns.IXFR})
_ANY_PORT = 443  # a name that no port reaches is refused with the same reason on each


class Names:
    """Answers the queries of one task.

    `own` are the host names that the task itself goes by; without `ipv6` no name has an IPv6 address.
    """

    __slots__ = ("_budget", "_gate", "_ipv6", "_kinds", "_last", "_own", "_synthetic", "_task")

    def __init__(
        self, gate: Gate, task: GateTask, synthetic: Synthetic, own: frozenset[str] = frozenset(), *, ipv6: bool = True
    ) -> None:
        self._budget = Budget(BURST, RATE, gate.reactor.now)
        self._gate = gate
        self._task = task
        self._synthetic = synthetic
        self._own = own
        self._ipv6 = ipv6
        self._last = ""  # the name refused last, and the types it was refused for since it was recorded
        self._kinds: set[int] = set()

    def may_answer(self) -> bool:
        """Whether a query may be read: not while the task has asked for more than its share."""
        return self._budget.allows(self._gate.reactor.now)

    def answer(self, message: bytes, *, stream: bool) -> bytes:
        """Return the answer to one message, empty where there must be none. Not `stream` where datagrams are short."""
        self._budget.spend()
        try:
            query = dns.parse_query(message)
        except WireError as error:
            Entry(self._gate, self._task, None, METHOD).write(How.REFUSED, error.reason)
            return error.reply
        limit = dns_answer.STREAM if stream else dns_answer.datagram_limit(query)
        if query.edns is not None and query.edns.version:
            return dns_answer.failure(query, dns.BADVERS, limit=limit)
        if query.space != dns.IN or query.kind in _TRANSFERS:
            return dns_answer.failure(query, dns.REFUSED, limit=limit)
        host = query.host
        if host is None:
            return self._no_host(query, limit)
        name = host.text
        if name == "localhost" or name.endswith(".localhost") or name in self._own:
            loopback = _LOOPBACK.get(query.kind) if self._ipv6 or query.kind == dns.A else None
            return dns_answer.addresses(query, (loopback,) if loopback else (), TTL, limit)
        if name.endswith(".arpa"):
            packed = dns.address_of(query.labels)
            if packed is not None:
                return self._reverse(query, packed, limit)
        return self._forward(query, host, limit)

    def _no_host(self, query: Query, limit: int) -> bytes:
        if not query.labels:
            return dns_answer.no_data(query, limit)  # the root exists, and has nothing for us
        if self._news(query.shown, query.kind):
            entry = Entry(self._gate, self._task, None, METHOD)
            entry.host = query.shown
            entry.write(How.REFUSED, Reason.BAD_HOST)
        return dns_answer.no_name(query, Reason.BAD_HOST.sentence, limit, code=dns_answer.OTHER)

    def _reverse(self, query: Query, packed: bytes, limit: int) -> bytes:
        # Not recorded: no rule could name a reverse name, and many a server asks for those of its clients.
        host = self._synthetic.name(packed)
        name = "localhost" if packed in _LOOPBACKS else host.text if host is not None else ""
        if not name:
            return dns_answer.no_name(query, Reason.NOT_ISSUED.sentence, limit, code=dns_answer.OTHER)
        if query.kind != dns.PTR:
            return dns_answer.no_data(query, limit)
        return dns_answer.pointer(query, name, TTL, limit)

    def _forward(self, query: Query, host: Host, limit: int) -> bytes:
        task = self._task
        if not (could_reach(task.policy, host, task.phase) or (task.tools is not None and host.text == TOOLS)):
            decision = decide(task.policy, Destination(host, _ANY_PORT), task.phase)
            self._refuse(decision, query.kind)
            return dns_answer.no_name(query, f"{decision.reason.sentence} ({decision.name})", limit)
        if query.kind != dns.A and not (query.kind == dns.AAAA and self._ipv6):
            return dns_answer.no_data(query, limit)
        packed = self._synthetic.address(host, ipv6=query.kind == dns.AAAA)
        if packed is None:
            decision = decide(task.policy, Destination(host, _ANY_PORT), task.phase)
            self._refuse(decision.refuse(Reason.TOO_MANY_NAMES, fix=""), query.kind)
            return dns_answer.failure(query, dns.SERVFAIL, Reason.TOO_MANY_NAMES.sentence, limit)
        return dns_answer.addresses(query, (packed,), TTL, limit)

    def _refuse(self, decision: Decision, kind: int) -> None:
        host = decision.destination.host
        if self._news(host.text, kind):
            # A look-up has no port; what would help is a rule for the name, which a later refusal can make narrower.
            fix = f"--allow {host.text}" if decision.fix else ""
            decision = decision.replace(destination=Destination(host, 0), fix=fix)
            if is_tools(decision.destination):
                decision = tools_decision(decision, decision.destination, decision.phase, offered=False)
            Entry(self._gate, self._task, decision, METHOD).write(How.REFUSED, decision.reason)

    def _news(self, name: str, kind: int) -> bool:
        # getaddrinfo asks for A and AAAA, others for HTTPS too: one look-up, one line.
        if name == self._last and kind not in self._kinds:
            self._kinds.add(kind)
            return False
        self._last = name
        self._kinds = {kind}
        return True
