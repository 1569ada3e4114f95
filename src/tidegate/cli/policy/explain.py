"""`tidegate policy explain`: what a policy says of one destination, and why (POL-14).

No look-up is made: for a name, the addresses it may lead to are judged only where `--address` gives them.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final

import click

from tidegate.cli.policy.options import (
    address_of,
    destination_of,
    json_option,
    judge_of,
    phase_option,
    policy_of_options,
    policy_options,
)
from tidegate.model.errors import StartError, UsageError
from tidegate.model.reason import Reason
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy import explain as core
from tidegate.policy.scope import is_exempt
from tidegate.runtime import secret_store
from tidegate.runtime.state import state_folder

if TYPE_CHECKING:
    from tidegate.model.destination import Destination
    from tidegate.policy.policy import Policy

LOOPBACK: Final = b"\x7f\0\0\1"


@click.command()
@click.argument("target", metavar="HOST[:PORT]")
@policy_options
@phase_option
@click.option(
    "--address", "addresses", multiple=True, metavar="A", help="An address the name leads to; may be repeated."
)
@click.option("--secret", "given", multiple=True, metavar="NAME", help="As for a run with this secret.")
@json_option
def explain(
    *, target: str, phase: str, addresses: tuple[str, ...], given: tuple[str, ...], as_json: bool, **named: Any
) -> int:
    """Say what the policy says of HOST, and by which rule.

    The port is 443 when left out. Without --policy it is the policy that `tidegate run` has here. No look-up is made.
    """
    destination = destination_of(target)
    packed = tuple(address_of(text) for text in addresses)
    literal = destination.host.packed
    if literal is not None and any(address != literal for address in packed):
        raise UsageError(f"{destination.host.text} is an address itself", fix="leave --address out")
    policy = policy_of_options(**named)
    explanation = _explained(policy, destination, Phase(phase), packed)
    if policy.locked and not explanation.decision.allowed:
        # `--allow` would change nothing, so the decision offers none; a line of the file itself would.
        free = policy.replace(modes=policy.modes.replace(locked=False))
        explanation = explanation.replace(policy_line=_explained(free, destination, Phase(phase), packed).policy_line)
    explanation = _with_secrets(explanation, policy, given)
    if as_json:
        click.echo(json.dumps(explanation.as_json(), ensure_ascii=True))
    else:
        for line in lines(explanation):
            click.echo(line)
    return 0


def _explained(policy: Policy, destination: Destination, phase: Phase, packed: tuple[bytes, ...]) -> core.Explanation:
    judge = judge_of(policy, phase, packed) if packed or destination.host.packed is not None else None
    explanation = core.explain(policy, destination, phase, judge)
    if judge is None and explanation.decision.allowed and _is_loopback(destination.host.text):
        # RFC 6761 section 6.3: where such a name leads is known without a look-up.
        return core.explain(policy, destination, phase, judge_of(policy, phase, (LOOPBACK,)))
    return explanation


def _with_secrets(explanation: core.Explanation, policy: Policy, given: tuple[str, ...]) -> core.Explanation:
    """Say what the secrets that a run was given, or could be, do to it (INS-5).

    Raises:
        StartError: where there is no secret of a given name.
    """
    state = state_folder(os.environ)
    destination = explanation.decision.destination
    place = destination.host.text, destination.port
    ours = [name for name in given if place in secret_store.load(state, name).hosts]
    others = [name for name in secret_store.names(state) if name not in given and _is_for(state, name, place)]
    if explanation.decision.verdict is Verdict.DENY or not (ours or others):
        return explanation
    why = explanation.inspected_why
    if is_exempt(destination, policy):
        return explanation.replace(
            inspected_why=f"'inspect: never' names it; a run with {_options(ours or others)} does not start"
        )
    if not ours:
        return explanation.replace(inspected_why=f"{why}; with {_options(others)} it is read, for that secret")
    because = f"the secret {' and '.join(ours)} belongs to it"
    return explanation.replace(
        inspected=True,
        inspected_why=f"{because}; {why}" if explanation.inspected else f"{because}, and is put in there",
    )


def _options(names: list[str]) -> str:
    return " or ".join(f"--secret {name}" for name in names)


def _is_for(state: str, name: str, place: tuple[str, int]) -> bool:
    try:
        return place in secret_store.load(state, name).hosts
    except StartError:
        return False  # `secret list` says what is wrong with it


def _is_loopback(name: str) -> bool:
    return name == "localhost" or name.endswith(".localhost")


def lines(explanation: core.Explanation) -> list[str]:
    """Return an explanation as a person reads it."""
    decision = explanation.decision
    said = [f"{decision.destination} in {decision.phase.value}: {decision.verdict.value}"]
    said.append(f"  reason     {decision.reason.word}: {decision.reason.sentence}")
    if decision.rule is not None:
        said.append(f"  rule       {decision.rule.text}  ({decision.name}, {decision.source})")
    else:
        said.append(f"  rule       none; {decision.source} decides ({decision.name})")
    if decision.address_class is not None:
        said.append(f"  address    {decision.address or 'as given'} ({decision.address_class.value})")
    elif not decision.destination.host.is_literal:
        said.append("  address    not looked up; give --address to have it judged")
    said.append(f"  inspected  {'yes' if explanation.inspected else 'no'}: {explanation.inspected_why}")
    if explanation.also_matched:
        said.append("  also matched")
        said += [
            f"    {rule.verdict.value} {rule.text}  ({rule.name}, {rule.source}): {why}"
            for rule, why in explanation.also_matched
        ]
    if decision.verdict is Verdict.ALLOW:
        return said
    if decision.verdict is Verdict.ASK:
        said.append("  on the command line nobody is asked: refused at once")
    if decision.fix:
        said.append(f"  to allow it: {decision.fix}")
    if explanation.policy_line:
        where = "a policy" if decision.fix else "the policy itself, which is locked"
        said.append(f"  in {where}: {explanation.policy_line}")
    if decision.reason is Reason.DENY_RULE:
        said.append(f"  to allow it: take the deny rule {decision.rule_text} ({decision.source}) away")
    elif not decision.fix and not explanation.policy_line:
        said.append("  no rule would allow it")
    return said
