"""A task at the gate: plans, tables, meters."""

from __future__ import annotations

from tests.unit.gate.kit import policy_of
from tidegate.addresses.surroundings import Surroundings
from tidegate.gate import task as task_module
from tidegate.gate.own_servers import NOTE
from tidegate.gate.synthetic import Synthetic
from tidegate.gate.task import GateTask, Meter
from tidegate.model.destination import parse_authority
from tidegate.model.reason import Reason
from tidegate.model.rule import RuleLimits, only
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.harnesses import built_in, harness_layer
from tidegate.policy.index import RuleIndex


def test_a_plan_is_made_once_and_anew_after_a_change() -> None:
    """POL-7, B40: the same object until policy or phase change."""
    task = GateTask("t1", policy_of("a.test"))
    where = parse_authority("a.test:443")
    plan = task.plan(where)
    assert task.plan(parse_authority("A.test.:443")) is plan
    assert plan.decision.verdict is Verdict.ALLOW
    task.remember(b"head", plan)
    task.change(policy=policy_of(), phase=Phase.INSTALL)
    assert task.heads == {}
    assert task.plan(where).decision.verdict is Verdict.DENY
    assert task.plan(where).decision.phase is Phase.INSTALL


def test_a_name_and_a_literal_that_look_alike_are_two() -> None:
    """Keys of the table never collide."""
    task = GateTask("t1", policy_of("1.2.3.4"))
    assert task.plan(parse_authority("1.2.3.4:80")) is not task.plan(parse_authority("1.2.3.4.test:80"))
    assert task.plan(parse_authority("[::1]:80")) is not task.plan(parse_authority("a.test:80"))


def test_a_refusal_of_loopback_tells_of_the_tasks_own_servers() -> None:
    """HLD-10, GAT-10: only where its connections are captured, since elsewhere the proxy is the one way to loopback."""
    task = GateTask("t1", policy_of())
    where = parse_authority("127.0.0.5:80")
    assert task.plan(where).decision.note == ""
    captured = GateTask("t2", policy_of())
    captured.synthetic = Synthetic()
    refused = captured.judge(captured.plan(where), Surroundings())
    assert refused.note == NOTE
    assert refused.sentence().endswith(f"; {NOTE}; to allow it: --allow 127.0.0.5:80")
    assert captured.plan(parse_authority("10.0.0.1:80")).decision.note == ""


def test_tables_are_bounded() -> None:
    """DESIGN rule 6: a task that asks for ever new hosts costs no more than a bound."""
    task = GateTask("t1", policy_of("**.test"))
    for number in range(task_module.PLANS + 10):
        plan = task.plan(parse_authority(f"n{number}.a.test:443"))
        task.remember(b"head %d" % number, plan)
    assert len(task._plans) <= task_module.PLANS
    assert len(task.heads) <= task_module.HEADS
    task.remember(b"x" * (task_module.HEAD_BYTES + 1), plan)
    assert all(len(head) <= task_module.HEAD_BYTES for head in task.heads)


def test_a_literal_is_judged_anew_when_the_surroundings_change() -> None:
    """ADR-2: an address that becomes this machine's own is own from then on."""
    task = GateTask("t1", policy_of("*"))
    plan = task.plan(parse_authority("1.2.3.4:443"))
    foreign, own = Surroundings(), Surroundings(frozenset({b"\x01\x02\x03\x04"}))
    assert task.judge(plan, foreign).allowed
    plan.refusal = b"cached"
    assert task.judge(plan, own).reason is Reason.OWN_ADDRESS
    assert plan.refusal == b""
    assert task.judge(plan, foreign).allowed


def test_a_name_waits_for_its_addresses() -> None:
    """ADR-4: before a look-up only stage one speaks."""
    task = GateTask("t1", policy_of("a.test:443"))
    plan = task.plan(parse_authority("a.test:443"))
    assert task.judge(plan, Surroundings()) is plan.decision
    assert task.admit(plan.decision, [b"\x0a\x00\x00\x01"], Surroundings()).allowed  # an exact rule admits it
    assert not task.admit_unresolved(
        GateTask("t", policy_of("*")).plan(parse_authority("localhost:1")).decision, Surroundings()
    ).allowed


def test_a_meter_counts_a_minute_and_bytes() -> None:
    """GAT-6: two in sixty seconds, then again; bytes up to the last one."""
    meter = Meter(10, 2)
    assert [meter.opens(now) for now in (0.0, 1.0, 2.0, 59.9, 60.0, 60.5, 61.0)] == [
        True,
        True,
        False,
        False,
        True,
        False,
        True,
    ]
    assert [meter.spend(count) for count in (4, 6, 1)] == [True, True, False]
    free = Meter(None, None)
    assert free.opens(0.0)
    assert free.spend(10**12)


def test_limits_of_the_governing_rule_only() -> None:
    """POL-5: a rule without limits has no meter; one with them has one for all its connections."""
    plain = GateTask("t1", policy_of("a.test"))
    decision = plain.plan(parse_authority("a.test:443")).decision
    assert plain.meter(decision) is None
    assert plain.limited(decision, 0.0, tunnel=True) is None
    limit = RuleLimits(connections_per_minute=1, requests=only(("GET",)))
    task = GateTask("t1", policy_of("a.test", limit=limit))
    decision = task.plan(parse_authority("a.test:443")).decision
    assert task.limited(decision, 0.0, tunnel=True) is Reason.METHOD_NOT_ALLOWED
    assert task.limited(decision, 0.0, tunnel=False) is None
    assert task.limited(decision, 1.0, tunnel=False) is Reason.RATE_LIMITED
    assert task.meter(decision) is task.meter(decision)


def test_a_paused_task_reaches_nothing_new_until_it_goes_on() -> None:
    """POL-8: pause refuses what the policy allows, says why, and takes nothing away for good."""
    task = GateTask("t1", policy_of("a.test", deny=("b.test",)))
    where = parse_authority("a.test:443")
    assert task.plan(where).decision.allowed
    task.pause(paused=True)
    assert task.plan(where).decision.reason is Reason.PAUSED
    assert task.plan(where).decision.verdict is Verdict.DENY
    assert task.plan(where).decision.fix == ""
    task.change(phase=Phase.INSTALL)
    assert task.plan(where).decision.reason is Reason.PAUSED
    task.pause(paused=False)
    assert task.plan(where).decision.allowed


def test_commands_of_one_task_share_meters_names_and_the_bound() -> None:
    """GAT-6, HLD-5, HLD-6: what is per task is per task, however many commands it has."""
    policy = policy_of("a.test", limit=RuleLimits(connections_per_minute=1))
    first, second = GateTask("t1", policy), GateTask("t1", policy)
    first.synthetic = Synthetic()
    second.join(first)
    assert second.synthetic is first.synthetic
    assert second.idle_ends is first.idle_ends
    decision = first.plan(parse_authority("a.test:443")).decision
    assert first.limited(decision, 0.0, tunnel=False) is None
    assert second.limited(decision, 1.0, tunnel=False) is Reason.RATE_LIMITED
    first.connections, second.connections = 3, 4
    assert first.connections_of_all() == second.connections_of_all() == 7
    first.part()
    assert second.connections_of_all() == 4


def test_a_command_that_is_not_the_agent_never_gets_its_hosts() -> None:
    """POL-12: from the start, and after whatever change of the policy."""
    layer = harness_layer(built_in("claude"))  # type: ignore[arg-type]
    policy = policy_of("a.test")
    policy = policy.replace(index=RuleIndex((*policy.index.rows, *layer.rows)), guarded=layer.guarded)
    api, own = parse_authority("api.anthropic.com:443"), parse_authority("a.test:443")
    for agent in (True, False):
        task = GateTask("t1", policy, agent=agent)
        for _ in range(2):
            assert task.plan(api).decision.allowed is agent
            assert task.plan(own).decision.allowed
            task.change(policy=policy)


def test_a_guarded_host_is_no_tunnel() -> None:
    """INS-8: where nothing reads it, it is refused; the neighbour passes, and so does what is never inspected."""
    guarded = policy_of("a.test", "b.test").replace(guarded=(("a.test", 443),))
    task = GateTask("t1", guarded)
    for host, reason in (("a.test", Reason.NOT_INSPECTABLE), ("b.test", None)):
        decision = task.plan(parse_authority(f"{host}:443")).decision
        assert task.limited(decision, 0.0, tunnel=True) is reason
    task.change(policy=guarded.replace(never_inspected=guarded.index.rows[:1]))
    assert task.limited(task.plan(parse_authority("a.test:443")).decision, 0.0, tunnel=True) is None
