"""The files in which agents keep a sign-in, and which of them an agent's task does not see (INS-5, INS-8).

An agent renews such a sign-in by itself and writes it back, so no stand-in can be in the file: what is in it is good
everywhere. So an agent has its own only where it has no key in a variable, and no other agent's, unless the policy lets
that one's model through; for a file that stays in sight a person is told so, before it starts.

Rules of the file: only what is there is hidden, and what a person shares by its name is not. Nothing here opens one of
these files. A command that is no agent is not looked at: of whose sign-in it could be in need is not known.

Sources: code.claude.com/docs/en/iam, developers.openai.com/codex/auth, gemini-cli's packages/core/src/config/storage.ts
(0.61.0), opencode.ai/docs/providers; of Droid as others found them.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tidegate.policy.harnesses import Harness
    from tidegate.policy.policy import Policy
    from tidegate.runtime.task import Order

# harness -> folder in the home, what moves it (a variable, and what comes behind it), names
_FILES: Mapping[str, tuple[str, str, str, tuple[str, ...]]] = {
    "claude": (".claude", "CLAUDE_CONFIG_DIR", "", (".credentials.json",)),
    "codex": (".codex", "CODEX_HOME", "", ("auth.json",)),
    "gemini": (".gemini", "GEMINI_CLI_HOME", "/.gemini", ("oauth_creds.json", "gemini-credentials.json", ".env")),
    "droid": (".factory", "", "", ("auth.json", "auth.encrypted", "auth.v2.file", "auth.v2.key")),
    "opencode": (".local/share/opencode", "XDG_DATA_HOME", "/opencode", ("auth.json",)),
}


def sign_ins(name: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the files that are there of one harness's sign-in, in the home folder and where a variable moves it."""
    if name not in _FILES:
        return ()
    folder, variable, behind, names = _FILES[name]
    home, moved = environ.get("HOME", ""), environ.get(variable, "") if variable else ""
    bases = [f"{base}{rest}" for base, rest in ((home, f"/{folder}"), (moved, behind)) if os.path.isabs(base)]
    found = dict.fromkeys(os.path.normpath(f"{base}/{file}") for base in bases for file in names)
    return tuple(path for path in found if os.path.isfile(path))


def without_sign_ins(order: Order, policy: Policy, harness: Harness, *, hides: bool) -> tuple[Order, tuple[str, ...]]:
    """Return the order of an agent without what it does not need, and what to tell a person about it.

    The order has its keys by now. A hold that `hides` no single file leaves them, and that is told.
    """
    shared = {share.path for share in order.shares}
    own = _unshared(sign_ins(harness.name, order.environ), shared)
    others = [
        path
        for other in _FILES
        if other != harness.name and not _is_let(other, policy)
        for path in _unshared(sign_ins(other, order.environ), shared)
    ]
    beside = {host.only_key for host in harness.hosts}  # keys of others, with which the agent itself is not signed in
    key = next((key.variable for key in order.keys if key.variable not in beside), "")
    notes = []
    if own and key and hides:
        notes.append(
            f"the task does not see {_shown(own)}: it has a stand-in for the key in {key}; without that variable it"
            " has the sign-in"
        )
    elif own and order.container is None:
        notes.append(
            f"the task can read {_shown(own)}, and nothing stands for what is in it: a key in a variable stays"
            " outside (docs/models.md)"
        )
    if others and not hides:
        notes.append(f"the task can read {_shown(others)} too: this hold hides no single file")
    out = (*(own if key else ()), *others) if hides else ()
    return order.replace(hidden=tuple(dict.fromkeys((*order.hidden, *out)))), tuple(notes)


def _unshared(paths: Iterable[str], shared: set[str]) -> tuple[str, ...]:
    return tuple(path for path in paths if os.path.realpath(path) not in shared)


def _is_let(name: str, policy: Policy) -> bool:
    """Whether the policy lets some model of this harness through, so that it may be run by the agent."""
    from tidegate.model.destination import parse_authority
    from tidegate.model.verdict import Phase
    from tidegate.policy.decide import decide
    from tidegate.policy.harnesses import built_in

    harness = built_in(name)
    if harness is None:
        return False
    # Where it needs another's key it does not go by its own sign-in.
    apis = [host.rule for host in harness.hosts if host.rule in harness.model_api and not host.only_key]
    return any(decide(policy, parse_authority(rule, 443), Phase.RUNTIME).allowed for rule in apis)


def _shown(paths: Iterable[str]) -> str:
    return ", ".join(map(ascii, paths))
