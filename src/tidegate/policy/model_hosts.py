"""The hosts of model services that are known, and which of them a harness's rules lead to (INS-8).

What may be asked of each is in inspect/model_services.py; here are only the names, for whoever decides what is read.
All of them speak HTTPS on its own port and on no other.
"""

from __future__ import annotations

from tidegate.model.destination import Destination
from tidegate.model.host import canonical_host
from tidegate.model.rule import Origin
from tidegate.policy.decide import matches_host
from tidegate.policy.index import RuleIndex
from tidegate.policy.rows import ORIGIN, PORT, rule_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidegate.policy.policy import Policy
    from tidegate.policy.rows import Row

HTTPS = 443
MODEL_HOSTS = {
    "api.anthropic.com": "anthropic",
    "api.openai.com": "openai",
    # Where data stays in one region: developers.openai.com/api/docs/guides/data-residency, and openai-node's list.
    **dict.fromkeys((f"{region}.api.openai.com" for region in ("us", "eu", "au", "in", "jp", "ae")), "openai"),
    "chatgpt.com": "codex",
    "generativelanguage.googleapis.com": "google",
    "cloudcode-pa.googleapis.com": "code-assist",
    "api.factory.ai": "factory",
    "api.eu.factory.ai": "factory",
    "app.factory.ai": "factory",
}
"""Host -> the service that answers there."""


def without_agent(policy: Policy) -> Policy:
    """Return the policy of a command that is not the agent: it has none of the agent's hosts (POL-12).

    What is guarded stays so: whoever is let through to a model service by another rule is looked at too.
    """
    rows = tuple(row for row in policy.index.rows if row[ORIGIN] != Origin.HARNESS)
    return policy if len(rows) == len(policy.index.rows) else policy.replace(index=RuleIndex(rows))


def guarded_by(rows: Iterable[Row]) -> tuple[tuple[str, int], ...]:
    """Return all known hosts, with their port, of the model services that some of these rules match, by wildcards too.

    Also those to which none of them leads: another rule of the task may, and a service is one at all of its hosts.
    """
    rules = [rule_of(row) for row in rows if row[PORT] in {None, HTTPS}]
    places = {host: Destination(canonical_host(host), HTTPS) for host in MODEL_HOSTS}
    services = {MODEL_HOSTS[host] for host, at in places.items() if any(matches_host(rule, at) for rule in rules)}
    return tuple((at.host.text, at.port) for host, at in places.items() if MODEL_HOSTS[host] in services)
