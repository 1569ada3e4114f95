"""The keys of an agent's model services, in place of which its task has stand-ins (INS-8, INS-5).

Rules of the file:

* Only keys of services that the policy guards: there the gate reads requests, and swaps a stand-in for the key in the
  one header in which that service takes it. A host that is never inspected leaves its keys as they are.
* They are variables of whoever starts the run. A secret that a person set for the same variable counts instead.
* The values are got in the gate's process, as those of every secret; here is only which they are.

What it does not do: put a stand-in into files in which an agent keeps a sign-in (sign_ins.py).
"""

from __future__ import annotations

from secrets import randbelow

from tidegate.inspect.placeholder import UnfitError, make_placeholder
from tidegate.model.destination import Destination
from tidegate.model.host import canonical_host
from tidegate.policy.model_hosts import MODEL_HOSTS
from tidegate.policy.scope import is_exempt
from tidegate.runtime.secret_store import Stored

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from tidegate.policy.policy import Policy

KEYS: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "anthropic": (
        ("ANTHROPIC_API_KEY", "header", "x-api-key"),
        ("ANTHROPIC_AUTH_TOKEN", "bearer", ""),
        ("CLAUDE_CODE_OAUTH_TOKEN", "bearer", ""),
    ),
    "openai": (("OPENAI_API_KEY", "bearer", ""), ("CODEX_API_KEY", "bearer", "")),
    "google": (("GEMINI_API_KEY", "header", "x-goog-api-key"), ("GOOGLE_API_KEY", "header", "x-goog-api-key")),
    "factory": (("FACTORY_API_KEY", "bearer", ""),),
}
"""Service -> (variable, place, name of the header) of each of its keys, as its agents document them.

Sources: code.claude.com/docs/en/settings, developers.openai.com/codex/auth, ai.google.dev/gemini-api/docs/api-key,
docs.factory.ai/cli/droid-exec/overview.
"""

ALONE: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("x-api-key",),
    "openai": ("authorization",),
    "google": ("x-goog-api-key", "authorization", "?key"),
    "factory": ("authorization", "cookie"),
}
"""Service -> where it takes a key: there nothing else passes, once the task has a stand-in for one (inspect.secrets).

A sign-in of Claude's, in `Authorization`, may stand beside a key in the environment: Claude Code asks its user which of
both it is to use. Of what it does with either nothing is kept that could be read there later.
"""


def alone_at(variable: str, hosts: Iterable[tuple[str, int]]) -> tuple[bytes, ...]:
    """Return the fields that take stand-ins alone for the secret of this variable at these hosts."""
    services = {MODEL_HOSTS.get(host, "") for host, _ in hosts}
    found = [service for service in services if any(variable == name for name, _, _ in KEYS.get(service, ()))]
    return tuple(dict.fromkeys(field.encode() for service in sorted(found) for field in ALONE.get(service, ())))


def variables_of(guarded: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    """Return the variables that hold keys of the services at these places."""
    return tuple(name for host, _ in guarded for name, _, _ in KEYS.get(MODEL_HOSTS.get(host, ""), ()))


def keys_of(policy: Policy, environ: Mapping[str, str], others: Iterable[Stored]) -> tuple[Stored, ...]:
    """Return the keys that the caller has for guarded services, but for variables that other secrets are for."""
    hosts: dict[str, list[tuple[str, int]]] = {}
    for host, port in policy.guarded:
        if not is_exempt(Destination(canonical_host(host), port), policy):
            hosts.setdefault(MODEL_HOSTS.get(host, ""), []).append((host, port))
    taken = {one.variable for one in others}
    return tuple(
        Stored(variable, tuple(places), place, field, variable, "env", (variable,))
        for service, places in hosts.items()
        for variable, place, field in KEYS.get(service, ())
        if environ.get(variable) and variable not in taken
    )


def fit(keys: Iterable[Stored], environ: Mapping[str, str]) -> tuple[Stored, ...]:
    """Return those of the keys that a stand-in can be made for."""
    return tuple(key for key in keys if _is_fit(environ[key.variable].encode("utf-8", "surrogateescape")))


def _is_fit(value: bytes) -> bool:
    try:
        make_placeholder(value.rstrip(b"\r\n"), randbelow)
    except UnfitError:
        return False
    return True


def from_plain(data: Iterable[Any]) -> tuple[Stored, ...]:
    """Return the keys that the gate's process was told of (runtime/task.py)."""
    return tuple(
        Stored(variable, tuple(map(tuple, hosts)), place, field, variable, "env", (variable,))
        for variable, hosts, place, field in data
    )
