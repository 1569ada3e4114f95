"""`tidegate run` of an agent: which one the command is, and that what was looked at is what runs (POL-12)."""

from __future__ import annotations

from tidegate.cli.main import say
from tidegate.runtime.agent import named_agent, recognised_agent, require_way_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.cli.run_options import RunOptions
    from tidegate.policy.policy import Policy
    from tidegate.runtime.agent import Agent
    from tidegate.runtime.task import Order


def agent_of(options: RunOptions, order: Order) -> Agent | None:
    """Return the agent that the command is, by a person's word or by its name and place.

    Raises:
        TidegateError: for a harness that is not this command's, or that would not find the gate.
    """
    agent: Agent | None = None
    if options.harness:
        agent = named_agent(options.harness, order.command[0], order.phase, order.environ)
    elif options.container is None:  # what runs in one is the image's, of which nothing is known here
        written = (order.folder, *(share.path for share in options.shares if not share.readonly))
        agent = recognised_agent(order.command[0], order.phase, order.environ, order.folder, written)
    if agent is not None:
        require_way_out(agent, order.capture)
    return agent


def with_keys(order: Order, policy: Policy, agent: Agent | None, hold: str) -> Order:
    """Return the order with the keys of its model services, in place of which the task has stand-ins (INS-8).

    The files in which agents keep a sign-in are hidden from it where it does not need them.
    """
    order = _with_keys(order, policy)
    if agent is None or agent.doubt:
        return order
    from tidegate.runtime.sign_ins import without_sign_ins

    # landlock would lock the folders around a hidden file, in which the agent keeps its state.
    order, notes = without_sign_ins(order, policy, agent.harness, hides=hold != "landlock")
    for note in notes:
        say(f"note: {note}")
    return order


def _with_keys(order: Order, policy: Policy) -> Order:
    if not policy.guarded:
        return order
    from tidegate.runtime.model_keys import fit, keys_of

    found = keys_of(policy, order.environ, order.secrets)
    keys = fit(found, order.environ)
    for key in found:
        if key not in keys:
            say(f"note: {key.variable} is in the task as it is: no stand-in can be made for it")
    return order.replace(keys=keys)


def as_looked_at(order: Order, agent: Agent | None) -> Order:
    """Return the order with the program that was looked at: a search along PATH inside could find something else."""
    if agent is None or not agent.program or agent.doubt or "/" in order.command[0]:
        return order
    return order.replace(command=(agent.program, *order.command[1:]))
