"""A task as the gate sees it: its policy, its phase, and what was decided for it lately.

Rules of the file:

* A plan holds one destination's decision and what follows from it alone. It is the same object for the same
  destination until policy or phase change, so that a retry storm costs a look-up in a table (B40).
* All tables are bounded: one that is full is emptied, because a hostile task can fill any table.
* Everything here is used on the gate's thread only.
"""

from __future__ import annotations

from tidegate.addresses.admission import admit, admit_unresolved
from tidegate.gate.idle_ends import IdleEnds
from tidegate.gate.own_servers import noted
from tidegate.gate.tool_door import is_tools, tools_decision
from tidegate.model.decision import Decision
from tidegate.model.destination import Destination
from tidegate.model.reason import Reason
from tidegate.model.rule import NO_LIMITS
from tidegate.model.verdict import Phase
from tidegate.policy.alternatives import narrows, not_read
from tidegate.policy.decide import decide
from tidegate.policy.model_hosts import without_agent
from tidegate.policy.scope import is_exempt, is_read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Sequence

    from tidegate.addresses.surroundings import Surroundings
    from tidegate.gate.request import Request
    from tidegate.gate.synthetic import Synthetic
    from tidegate.gate.tool_door import ToolDoor
    from tidegate.model.rule import Rule
    from tidegate.model.seams import Asker, Inspector, Recorder, Secrets
    from tidegate.policy.policy import Policy
else:
    from _collections import deque  # collections itself brings ten modules

PLANS = 1024  # destinations a task is likely to use at once
HEADS = 256  # request heads that come again and again
HEAD_BYTES = 512  # longer ones are not worth keeping
MINUTE = 60.0


class Plan:
    """One destination of one task: the decision of stage one and, for a literal, of stage two."""

    __slots__ = ("admitted", "around", "decision", "destination", "refusal")

    def __init__(self, decision: Decision) -> None:
        self.destination: Destination = decision.destination
        self.decision = decision
        self.refusal = b""  # the rendered 403, once it was needed
        self.around: Surroundings | None = None  # what `admitted` was judged in
        self.admitted = decision


class Meter:
    """What one rule with limits has let through: connections in the last minute, bytes up in all (GAT-6)."""

    __slots__ = ("_opened", "bytes_left", "per_minute")

    reason = Reason.BYTES_LIMIT

    def __init__(self, bytes_up: int | None, per_minute: int | None) -> None:
        self.bytes_left = bytes_up
        self.per_minute = per_minute
        self._opened: deque[float] = deque()

    def opens(self, now: float) -> bool:
        """Count one more connection; False when the rule allows no more in this minute."""
        if self.per_minute is None:
            return True
        opened = self._opened
        while opened and opened[0] <= now - MINUTE:
            opened.popleft()
        if len(opened) >= self.per_minute:
            return False
        opened.append(now)
        return True

    def spend(self, count: int) -> bool:
        """Count bytes that flow up; False when they are more than the rule allows."""
        if self.bytes_left is None:
            return True
        self.bytes_left -= count
        return self.bytes_left >= 0


class Allowance:
    """What is left of the bytes of a person's answer, both directions added (ASK-7). Whoever asks keeps count.

    `rule` is what else counts the bytes of this direction.
    """

    __slots__ = ("_asker", "_decision", "_rule", "_task", "reason")

    def __init__(self, asker: Asker, task: str, decision: Decision, rule: Meter | Allowance | None) -> None:
        self._asker = asker
        self._task = task
        self._decision = decision
        self._rule = rule
        self.reason = Reason.GRANT_ENDED

    def spend(self, count: int) -> bool:
        """Count bytes that flow; False when they are more than the answer or the rule allows."""
        if not self._asker.spend(self._task, self._decision, count):
            return False
        if self._rule is None or self._rule.spend(count):
            return True
        self.reason = self._rule.reason
        return False


class GateTask:
    """One task at the gate, or one of its commands where several run (`join`).

    `connections` are those of its clients that are open now, `clients` their sockets' descriptors. `recorder` takes its
    events in place of the gate's own; where `asks` is false nobody is asked for it, and only what was answered before
    counts (ASK-4). `agent` is false for a command that does not get what the task's agent gets (POL-12).
    """

    __slots__ = (
        "_meters",
        "_plans",
        "agent",
        "asks",
        "captured",
        "clients",
        "connections",
        "family",
        "heads",
        "helpers",
        "id",
        "idle_ends",
        "inspector",
        "met",
        "paused",
        "phase",
        "policy",
        "recorder",
        "redirected",
        "redirects",
        "requests",
        "secrets",
        "synthetic",
        "tools",
    )  # fmt: skip

    def __init__(
        self,
        id: str,  # noqa: A002 - the name the journal has for it
        policy: Policy,
        phase: Phase = Phase.RUNTIME,
        *,
        recorder: Recorder | None = None,
        asks: bool = True,
        agent: bool = True,
    ) -> None:
        self.id = id
        self.agent = agent
        self.policy = policy if agent else without_agent(policy)
        self.phase = phase
        self.recorder = recorder
        self.asks = asks
        self.connections = 0
        self.clients: set[int] = set()
        self.idle_ends = IdleEnds()
        self.family: set[GateTask] = set()  # the commands of one task; empty where it has just one
        self.paused = False
        self.heads: dict[bytes, Plan] = {}  # whole CONNECT heads: reading one is a pure function of its bytes
        self.requests: dict[bytes, tuple[Plan, Request]] = {}  # heads of plain requests, likewise
        self.captured: dict[object, Plan] = {}  # what connections were made to, likewise
        self.met: dict[
            tuple[bytes, int], Destination
        ] = {}  # places of its loopback that stand for services of this machine
        self.synthetic: Synthetic | None = None  # the names it looked up, once something captures its connections
        self.inspector: Inspector | None = None  # reads inside TLS, where a rule asks for that
        self.secrets: Secrets | None = None  # where it was given some (INS-5)
        self.tools: ToolDoor | None = None  # what it reaches at the name of its tools (SRV-6)
        self.helpers: set[GateTask] = (
            set()
        )  # tools of it that run now and are held to its hosts (runtime/tool_holds.py)
        self.redirected = True  # whether an answer may lead elsewhere
        self.redirects: dict[Destination, Destination] = {}  # where hosts that are read sent it lately (redirected.py)
        self._plans: dict[tuple[str, int], Plan] = {}
        self._meters: dict[Rule, Meter] = {}

    def change(self, *, policy: Policy | None = None, phase: Phase | None = None) -> None:
        """Put another policy or phase in force for new connections; open ones stay as they are."""
        if policy is not None:
            self.policy = policy if self.agent else without_agent(policy)
        self.phase = phase or self.phase
        self._forget()
        self._meters.clear()
        for helper in self.helpers:
            helper.change(policy=policy, phase=phase)

    def pause(self, *, paused: bool) -> None:
        """Refuse every new connection from now on, or no more; open ones stay as they are."""
        self.paused = paused
        self._forget()
        for helper in self.helpers:
            helper.pause(paused=paused)

    def join(self, other: GateTask) -> None:
        """Be one more command of the task that `other` is of: names, meters and the bound of connections are one."""
        family = other.family or {other}
        family.add(self)
        self.family = other.family = family
        self.synthetic = other.synthetic
        self.inspector = other.inspector
        self.secrets = other.secrets
        self.idle_ends = other.idle_ends
        self._meters = other._meters

    def part(self) -> None:
        """This command has ended."""
        self.family.discard(self)
        self.family = set()

    def connections_of_all(self) -> int:
        """Return how many connections all commands of the task have open."""
        return sum(one.connections for one in self.family)

    def plan(self, destination: Destination) -> Plan:
        """Return the plan for a destination; decides at most once while nothing changes.

        An address that stands for a name is that name: some clients look up by themselves what they ask a proxy for.
        """
        if self.synthetic is not None and destination.host.packed is not None:
            name = self.synthetic.name(destination.host.packed)
            if name is not None:
                destination = Destination(name, destination.port)
        key = (destination.host.bracketed, destination.port)
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) >= PLANS:
                self._forget()
            decision = decide(self.policy, destination, self.phase)
            if is_tools(destination):
                decision = tools_decision(decision, destination, self.phase, offered=self.tools is not None)
            elif self.synthetic is not None:
                decision = noted(decision)
            if self.paused:
                decision = decision.refuse(Reason.PAUSED, fix="")
            plan = self._plans[key] = Plan(decision)
        return plan

    def _forget(self) -> None:
        # Heads and captured destinations lead to plans, so they go together.
        self._plans.clear()
        self.heads.clear()
        self.requests.clear()
        self.captured.clear()

    def remember(self, head: bytes, plan: Plan) -> None:
        """Keep what a CONNECT head led to."""
        if len(head) <= HEAD_BYTES and not self._may_become_a_name(plan):
            if len(self.heads) >= HEADS:
                self.heads.clear()
            self.heads[head] = plan

    def remember_request(self, head: bytes, plan: Plan, request: Request) -> None:
        """Keep what the head of a plain request was read as."""
        if 0 < len(head) <= HEAD_BYTES and not self._may_become_a_name(plan):
            if len(self.requests) >= HEADS:
                self.requests.clear()
            self.requests[head] = (plan, request)

    def _may_become_a_name(self, plan: Plan) -> bool:
        # An address of the synthetic ranges that no name has yet: the next look-up may give it to one.
        packed = plan.destination.host.packed
        return packed is not None and self.synthetic is not None and self.synthetic.ranges.hold(packed)

    def judge(self, plan: Plan, around: Surroundings) -> Decision:
        """Return the decision before any look-up: of stage two for a literal, whatever its verdict, else of stage one.

        Admission of a literal is asked once for each state of the surroundings.
        """
        packed = plan.destination.host.packed
        if packed is None:
            return plan.decision
        if plan.around is not around:
            plan.admitted = self.admit(plan.decision, (packed,), around)
            plan.around = around
            plan.refusal = b""
        return plan.admitted

    def admit(self, decision: Decision, addresses: Sequence[bytes], around: Surroundings) -> Decision:
        """Return the decision of stage two."""
        return admit(decision, addresses, around, self.policy.modes, self.policy.denied_literals(decision.phase))

    def admit_unresolved(self, decision: Decision, around: Surroundings) -> Decision:
        """Return the decision of stage two where only the upstream proxy resolves (ADR-5)."""
        return admit_unresolved(decision, around, self.policy.modes, self.policy.denied_literals(decision.phase))

    def reads(self, decision: Decision | None) -> bool:
        """Whether a connection under this decision is read inside TLS (INS-1)."""
        inspector = self.inspector
        if inspector is None or decision is None:
            return False
        destination = decision.destination
        if not inspector.covers(destination.host):
            return False
        if is_read(decision, self.policy):
            return True
        # A host of a secret is read whatever its rule says: only there can a stand-in become the value.
        return self.has_secret(destination) and not is_exempt(destination, self.policy)

    def has_secret(self, destination: Destination) -> bool:
        """Whether some secret of the task is for this destination."""
        return self.secrets is not None and self.secrets.belong(destination.host.text, destination.port)

    def meter(self, decision: Decision) -> Meter | None:
        """Return the meter of the governing rule, None where it has no bounds to count."""
        rule = decision.rule
        if rule is None or rule.limits is NO_LIMITS:
            return None
        limits = rule.limits
        if limits.bytes_up is None and limits.connections_per_minute is None:
            return None
        meter = self._meters.get(rule)
        if meter is None:
            meter = self._meters[rule] = Meter(limits.bytes_up, limits.connections_per_minute)
        return meter

    def meters(self, decision: Decision, asker: Asker | None) -> tuple[Meter | Allowance | None, Allowance | None]:
        """Return what counts the bytes up and the bytes down of a connection; None where nothing does."""
        meter = self.meter(decision)
        if asker is None or decision.grant is None or decision.grant.bytes is None:
            return meter, None
        return Allowance(asker, self.id, decision, meter), Allowance(asker, self.id, decision, None)

    def limited(self, decision: Decision, now: float, *, tunnel: bool) -> Reason | None:
        """Why the limits of the governing rule refuse this connection, None where they do not.

        A tunnel cannot be held to methods or paths, so a rule that has them opens one only where it is read inside; nor
        can what is asked of a guarded model service be looked at in one.
        """
        if tunnel and is_read(decision, self.policy) and not self.reads(decision) and not narrows(decision):
            return Reason.NOT_INSPECTABLE
        if tunnel and narrows(decision) and not self.reads(decision):
            return not_read(decision)
        meter = self.meter(decision)
        if meter is not None and not meter.opens(now):
            return Reason.RATE_LIMITED
        return None
