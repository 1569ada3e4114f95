"""The policy of a task that is created through the API (POL-8, POL-13).

A task that gives a policy, or hosts, has exactly those and what its folder remembers; one that gives neither has what
the settings say, which is nothing unless they say otherwise. In all cases the denies of the administrator's and of the
user's own file stay. A folder's `tidegate.yaml` is not read: nobody is there who could be asked whether to trust it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.model.errors import UsageError
from tidegate.model.rule import Layer, Origin
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.layers import PolicyLayer
from tidegate.policy.rows import rule_row
from tidegate.policy.rules import RuleError
from tidegate.runtime.imported_policy import read_policy
from tidegate.runtime.policy_sources import policy_in_force

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidegate.policy.policy import Policy
    from tidegate.policy.rows import Row
    from tidegate.state.settings import Settings


def policy_for(
    *,
    text: str | None,
    hosts: Iterable[str] | None,
    network: str | None,
    settings: Settings,
    folder: str,
    config: str,
    state: str,
) -> Policy:
    """Return the policy of a new task. `network` is what it says in place of the settings' default.

    A GurtOS task that names no hosts is one that gives neither (POL-13). `config` and `state` are tidegate's folders of
    these names.

    Raises:
        UsageError: for text that is no policy, a host that is no rule, or several ways to say what is reached.
        StartError: for text of another product that launches nothing there, or asks for no gate.
    """
    if sum(given is not None for given in (text, hosts, network)) > 1:
        raise UsageError("policy, hosts and network are three ways to say what a task reaches", fix="give one of them")
    layer = None
    if text is not None:
        written, imported = read_policy(text.encode(), "policy", folder)
        layer = None if imported is not None and imported.leaves_to_settings else written
    if layer is not None:
        pass
    elif hosts is not None:
        layer = _exactly(hosts, "task", "the task's hosts")
    elif (network or settings.network_default) == "allowlist":
        layer = _exactly(settings.default_hosts, "default-hosts", "settings")
    else:
        # Both phases are closed, so that hosts which are remembered for the folder are not reached either.
        layer = _exactly((), "network-none", "settings" if network is None else "the task", phases=frozenset())
    return policy_in_force(folder=folder, config=config, state=state, options=layer, no_folder_policy=True)


def rows_of(hosts: Iterable[str], name: str, source: str) -> list[Row]:
    """Return the rows of hosts that are allowed in both phases.

    Raises:
        UsageError: where one is no rule, with what to write instead (POL-2).
    """
    rows: list[Row] = []
    for host in hosts:
        try:
            rows += [
                rule_row(host, Verdict.ALLOW, phase, name, source, Origin.WRITTEN, Layer.COMMAND_LINE)
                for phase in Phase
            ]
        except RuleError as error:
            raise UsageError(f"{host!r}: {error.what}", fix=error.advice, code="rule") from None
    return rows


def _exactly(
    hosts: Iterable[str], name: str, source: str, *, phases: frozenset[Phase] = frozenset(Phase)
) -> PolicyLayer:
    # A layer that names phases names what is reached, even where that is nothing: no profile and no preset beside it.
    return PolicyLayer(
        Layer.COMMAND_LINE,
        source,
        rows=tuple(rows_of(hosts, name, source)),
        replaces=True,
        phases=phases,
        default=Verdict.DENY,
        default_source=source,
    )
