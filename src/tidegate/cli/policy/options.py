"""What the `policy` commands share: options that name a policy as `run` does, files read, destinations judged.

The policy of `explain` and `show` comes from the same function as that of `run`, so that what they say is what happens.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

import click

from tidegate.addresses.admission import admit
from tidegate.addresses.surroundings import Surroundings
from tidegate.cli.once import once
from tidegate.gate.hosts import hosts_addresses
from tidegate.gate.interfaces import own_addresses
from tidegate.model.decision import Decision
from tidegate.model.destination import Destination, PortError, parse_authority
from tidegate.model.errors import UsageError
from tidegate.model.host import HostError, canonical_host
from tidegate.model.rule import Layer
from tidegate.model.verdict import Phase
from tidegate.policy.explain import shadowed
from tidegate.policy.layers import join
from tidegate.policy.loader import load_policy
from tidegate.policy.policy import Policy
from tidegate.policy.positions import on_screen
from tidegate.policy.rules import RuleError
from tidegate.runtime.agent import Agent, find_harness, with_held_keys
from tidegate.runtime.imported_policy import policy_layer
from tidegate.runtime.policy_sources import option_layer, policy_in_force, read_policy_file
from tidegate.runtime.state import config_folder, state_folder

DEFAULT_PORT: Final = 443
PHASES: Final = tuple(phase.value for phase in Phase)

phase_option = click.option(
    "--phase", type=click.Choice(PHASES), default=Phase.RUNTIME.value, help="The phase of the task (runtime)."
)
json_option = click.option("--json", "as_json", is_flag=True, help="For machines.")


def policy_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options by which `run` finds its policy."""
    for option in reversed(
        (
            once("--policy", "policy_file", metavar="FILE", help="This policy, as run takes it."),
            click.option("--allow", multiple=True, metavar="HOST[:PORT]", help="As with run."),
            click.option("--deny", multiple=True, metavar="HOST[:PORT]", help="As with run."),
            click.option("--ask-for", multiple=True, metavar="HOST[:PORT]", help="As with run."),
            once("--profile", metavar="NAME", help="As with run."),
            once("--registries", metavar="MODE", help="As with run."),
            once("--harness", metavar="NAME|FILE", help="As with run, for the agent's command."),
            click.option("--trust-folder", is_flag=True, help="Use this folder's tidegate.yaml."),
            click.option("--no-folder-policy", is_flag=True, help="Leave this folder's tidegate.yaml aside."),
        )
    ):
        command = option(command)
    return command


def policy_of_options(
    *,
    policy_file: str,
    allow: tuple[str, ...],
    deny: tuple[str, ...],
    ask_for: tuple[str, ...],
    profile: str,
    registries: str,
    harness: str,
    trust_folder: bool,
    no_folder_policy: bool,
) -> Policy:
    """Return the policy that `run` would have with these options in this folder, and say what is odd about it.

    Raises:
        UsageError: for wrong text or an unreadable file.
        StartError: for a folder's file that nobody trusted.
    """
    policy = policy_in_force(
        folder=os.path.realpath("."),
        config=config_folder(os.environ),
        state=state_folder(os.environ),
        options=option_layer(allow=allow, ask=ask_for, deny=deny, profile=profile, registries=registries),
        policy_file=policy_file,
        trust_folder=trust_folder,
        no_folder_policy=no_folder_policy,
        agent=Agent(with_held_keys(find_harness(harness), os.environ)) if harness else None,
    )
    warn(policy)
    return policy


def policy_of_file(path: str, *, folder: bool = False, harness: str = "") -> Policy:
    """Return the policy that one file makes by itself, with the hosts of an agent where one is named.

    Raises:
        UsageError: when it cannot be read, or with all errors of its text.
    """
    notes: tuple[str, ...] = ()
    if folder:
        layer = load_policy(read_policy_file(path), path, Layer.FOLDER, folder=True)
    else:
        layer, notes = policy_layer(path, os.path.realpath("."))
    agent = Agent(with_held_keys(find_harness(harness), os.environ)).layer(None) if harness else None
    try:
        policy = join(layer) if agent is None else join(layer, agent)
    except RuleError as error:
        raise UsageError(f"{on_screen(path, 200)}: {error.what}", fix=error.advice) from None
    return policy.replace(notes=(*notes, *policy.notes)) if notes else policy


def warn(policy: Policy) -> None:
    """Say on standard error, once, what a policy leaves without effect (B13)."""
    for note in policy.notes:
        click.echo(f"tidegate: note: {note}", err=True)
    for line in shadowed(policy):
        click.echo(f"tidegate: warning: {line}", err=True)


def destination_of(text: str) -> Destination:
    """Return the destination that HOST[:PORT] names.

    Raises:
        UsageError: when it is malformed.
    """
    try:
        return parse_authority(text, DEFAULT_PORT)
    except (HostError, PortError) as error:
        raise UsageError(
            f"not a destination: '{on_screen(text)}': {error.what}", fix="write HOST or HOST:PORT, such as pypi.org:443"
        ) from None


def address_of(text: str) -> bytes:
    """Return the packed form of an address, with or without brackets.

    Raises:
        UsageError: when it is none.
    """
    try:
        packed = canonical_host(f"[{text}]" if ":" in text and text[:1] != "[" else text).packed
    except HostError:
        packed = None
    if packed is None:
        raise UsageError(f"not an address: '{on_screen(text)}'", fix="write an IPv4 or IPv6 address")
    return packed


def this_machine() -> Surroundings:
    """Return what is known of this machine without a look-up: its interfaces and its name in /etc/hosts."""
    name = os.uname().nodename.lower()
    try:
        own = own_addresses()
    except OSError:
        own = frozenset()
        click.echo(
            "tidegate: note: the kernel does not tell this machine's addresses; only loopback counts as own", err=True
        )
    return Surroundings(own.union(hosts_addresses(name)), frozenset(), frozenset({name, name.partition(".")[0]}))


def judge_of(policy: Policy, phase: Phase, addresses: tuple[bytes, ...]) -> Callable[[Decision], Decision]:
    """Return the second stage of a decision for these addresses; without any, for the literal it is about."""
    surroundings = this_machine()
    denied = policy.denied_literals(phase)

    def judge(decision: Decision) -> Decision:
        literal = decision.destination.host.packed
        led_to = addresses or (() if literal is None else (literal,))
        return admit(decision, led_to, surroundings, policy.modes, denied)

    return judge
