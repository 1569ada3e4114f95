"""Harnesses: the coding agents that are known, and what a file of the user's own may say of one (POL-12).

The YAML files here are the source; `compiled` is what runs read. A harness says which command it is, which hosts that
needs, and which of them is its model API. Rules of the file:

* Its hosts are allowed in the phase `runtime` only, under the name `harness:NAME`. A deny wins over them, a rule that
  a person wrote wins among equals, and none of them admits a private address (Origin.HARNESS).
* Two amounts: what the harness needs in all, for who names it, and only its verified model API, for a command that
  was merely recognised (POL-10).

Which process is the agent is not known here: runtime/agent.py decides that. harness_file.py reads the files.
"""

from __future__ import annotations

from tidegate.model.rule import Layer, Origin
from tidegate.model.value import Value
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.harnesses.compiled import HARNESSES
from tidegate.policy.layers import PolicyLayer
from tidegate.policy.model_hosts import guarded_by
from tidegate.policy.rows import rule_row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

HARNESS_NAMES = tuple(HARNESSES)


class HarnessHost(Value):
    """A host that a harness needs: the rule's canonical text, whether that was checked, and where the rule stands.

    `why` and `reference` are for people: what it is for, and what the check or the claim rests on. One with an
    `only_key` joins where the caller's variables have that key, and no other of the harness's model services.
    """

    rule: str
    verified: bool = False
    source: str = ""
    why: str = ""
    reference: str = ""
    only_key: str = ""


class Harness(Value):
    """An agent: `command` is the file name of its program, `model_api` are those of its hosts that answer as its model.

    One that is not `proxy_aware` connects by itself, and has no network where nothing captures that.
    """

    name: str
    command: str
    about: str = ""
    proxy_aware: bool = True
    hosts: tuple[HarnessHost, ...] = ()
    model_api: tuple[str, ...] = ()

    @property
    def rule_name(self) -> str:
        """The name that its rules carry."""
        return f"harness:{self.name}"

    @property
    def own_model_api(self) -> tuple[HarnessHost, ...]:
        """The hosts of its model that were checked."""
        return tuple(host for host in self.hosts if host.verified and host.rule in self.model_api)


def built_in(name: str) -> Harness | None:
    """Return the harness of this name that comes with tidegate, None where there is none."""
    found = HARNESSES.get(name)
    if found is None:
        return None
    about, command, proxy_aware, hosts, model_api = found
    source = f"harness {name}"
    places = tuple(HarnessHost(rule, ok, source, only_key=key) for rule, ok, key in hosts)
    return Harness(name, command, about, proxy_aware, places, model_api)


def built_in_for(command: str) -> Harness | None:
    """Return the harness that comes with tidegate whose program has this file name."""
    return next((built_in(name) for name, found in HARNESSES.items() if found[1] == command), None)


def harness_layer(harness: Harness, hosts: Iterable[HarnessHost] | None = None) -> PolicyLayer:
    """Return what a harness adds to a policy: all of its hosts, or these; the model's among them are guarded."""
    rows = tuple(
        rule_row(
            host.rule,
            Verdict.ALLOW,
            Phase.RUNTIME,
            harness.rule_name,
            host.source,
            Origin.HARNESS,
            Layer.HARNESS,
        )
        for host in (harness.hosts if hosts is None else hosts)
    )
    return PolicyLayer(Layer.HARNESS, f"harness {harness.name}", rows, guarded=guarded_by(rows))
