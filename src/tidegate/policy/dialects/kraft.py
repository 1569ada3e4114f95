"""Kraft: `config/repos.yaml`, and `relay_image` of `sandbox.yaml` (its page on network policies).

* A host is exact, with or without a port; `*.x` is one label in front, never the apex, and has no port; `*` and `**`
  are everything. Denies win. CIDRs are refused.
* A phase that is missing or empty allows nothing. `network: {}` with no phase is the same as no network.
* No network and not `unrestricted_network: true`: nothing is launched. Unrestricted beside a network, or on a kit, is
  refused. Unrestricted means no channel and no gates at all.
* What is not public needs an entry for exactly its host, with or without a port; this machine is never reached. Nothing
  a task or the command line says changes the lists, so the policy is locked.

`setup_command` runs in the phase install, so it becomes `setup`. How a sandbox is made (`kind`, `image`, `relay_image`)
is no part of a policy here: it is said which options do that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidegate.model.errors import StartError
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.dialects.draft import is_list, is_nothing, keys_of, value_of
from tidegate.policy.dialects.imported import Egress
from tidegate.policy.dialects.patterns import plain, split
from tidegate.policy.nodes import Mapping, Node, Scalar
from tidegate.policy.positions import on_screen
from tidegate.policy.setup_command import setup_command
from tidegate.policy.written import quoted

if TYPE_CHECKING:
    from tidegate.policy.dialects.draft import Draft

TITLE: Final = "Kraft"
KEYS: Final = ("repos", "relay_image")
_KINDS: Final = ("docker", "podman", "kit")
_THIS_MACHINE: Final = (
    "every address of this machine's interfaces is refused here, where Kraft refuses those that its host name leads to"
)
_ELSEWHERE: Final = "it says nothing of the network"
_EVERYTHING: Final = ("*", "**")
_POLICY: Final = "network: {runtime: {allow: [api.github.com:443]}}"
_NEITHER: Final = (
    "its sandbox has no network policy, so nothing is launched",
    f"write '{_POLICY}' below its sandbox, or 'unrestricted_network: true'",
)
_NO_FORM: Final = "a wildcard of Kraft is '*.NAME' alone, so what it would cover cannot be said; write the hosts out"


def recognises(root: Mapping) -> bool:
    """Whether this is one of Kraft's files."""
    repos = value_of(root, "repos")
    return is_list(repos) or (repos is not None and is_nothing(repos)) or "relay_image" in keys_of(root)


def read(draft: Draft, root: Node) -> None:
    """Read a whole file."""
    found: dict[str, Draft] = {}
    places: dict[str, Node] = {}
    image = ""
    for key, _, value in draft.pairs(root, "the file", KEYS, others=_ELSEWHERE):
        if key == "relay_image":
            image = draft.read.text(value, "'relay_image'") or ""
            draft.option(value, "relay_image", "--relay-image", image)
            continue
        for at, item in enumerate(draft.read.items(value, "'repos'", "write a list of repositories")):
            part = draft.part()
            path = _repository(part, item, f"'repos[{at}]'")
            if path.rstrip("/") in {one.rstrip("/") for one in found}:
                draft.read.wrong(item, "a repository twice", path, "keep one of them")
            elif path:
                found[path] = part
                places[path] = item
                draft.egress += part.egress
    if draft.read.problems:
        return
    if not found:
        also = f", and --relay-image {on_screen(image, 200)} when a task starts" if image else ""
        draft.refusal = ("it names no repository, so it has no policy", f"give config/repos.yaml{also}")
        return
    folder = draft.wanted.folder.rstrip("/")
    here = [path for path in found if path.rstrip("/") == folder]
    chosen = (
        here[0]
        if here and not draft.wanted.select
        else draft.choose("repository", "repositories", {path: path.rstrip("/") for path in found})
    )
    for path, node in places.items():
        if path != chosen:
            draft.drop(node, f"repos: {path}", "it is another repository; --select takes it")
    draft.take(found[chosen])
    within = f"{folder}/".startswith(f"{chosen.rstrip('/')}/")
    if draft.without_gate and not (within or draft.wanted.select or draft.wanted.first):
        # Of another repository a policy is a policy still; this would be none at all, for a folder nobody named.
        what = f"{draft.because}, and this folder is not in it"
        raise StartError(what, fix="give --open-network if that is meant", code="no-network-policy")


def _repository(draft: Draft, item: Node, of: str) -> str:
    """Read one repository; return its path, '' where it has none, which is noted."""
    path = ""
    sandbox: Node | None = None
    before = draft.read.problems.count
    for key, key_node, value in draft.pairs(item, of, ("path", "sandbox", "setup_command"), others=_ELSEWHERE):
        if key == "path":
            path = draft.read.text(value, "'path'") or ""
        elif key == "sandbox":
            sandbox = value
        else:
            words = setup_command(draft.read, value)
            text = quoted(value.text) if isinstance(value, Scalar) else f"[{', '.join(map(quoted, words))}]"
            draft.set(key_node, "setup_command", "setup", text)
    if not path and draft.read.problems.count == before:
        draft.read.wrong(item, "a repository without a path", "", "write 'path: /home/you/code/my-service'")
    if path:
        _sandbox(draft, path, item if sandbox is None else sandbox, there=sandbox is not None)
    return path


def _sandbox(draft: Draft, path: str, node: Node, *, there: bool) -> None:
    known = ("kind", "image", "network", "unrestricted_network")
    kind, phases = "", 0
    unrestricted: Scalar | None = None
    for key, key_node, value in draft.pairs(node, "'sandbox'", known, others=_ELSEWHERE) if there else ():
        if key == "kind":
            kind = draft.read.word(value, "'sandbox.kind'", _KINDS) or ""
            if kind == "kit":
                draft.aside(value, "sandbox.kind", "no hold of ours is one")
            else:
                draft.option(value, "sandbox.kind", "--hold", kind)
        elif key == "image":
            image = draft.read.text(value, "'sandbox.image'") or ""
            draft.option(value, "sandbox.image", "--image", image)
        elif key == "network":
            phases = _network(draft, value)
        elif draft.read.flag(value, "'sandbox.unrestricted_network'"):
            unrestricted = key_node
        else:
            draft.note(value, "sandbox.unrestricted_network", "exactly", ["a network policy is needed"])
    name = on_screen(path, 200)
    place = draft.read.source(node.mark)
    if unrestricted is None and not phases:
        draft.refusal = (f"{place}: repository {name}: {_NEITHER[0]}", _NEITHER[1])
        draft.egress.append(Egress(name, "fail", *_NEITHER))
    elif unrestricted is None:
        draft.settings = {"locked": "true", "default": "deny", "private": "exact-host", "own": "never"} | draft.settings
        draft.egress.append(Egress(name, "ok", "it has a network policy"))
        draft.notes.append(_THIS_MACHINE)
    elif phases:
        what = f"repository {name}: 'unrestricted_network' together with 'network'"
        draft.read.wrong(unrestricted, what, "", "keep one of them")
    elif kind == "kit":
        what = f"repository {name}: 'unrestricted_network' on a kit"
        draft.read.wrong(unrestricted, what, "", "write a network policy, or another kind")
    else:
        draft.without_gate = "open"
        draft.because = f"{draft.read.source(unrestricted.mark)} says unrestricted_network of {name}"
        draft.aside(unrestricted, "sandbox", "no gate and no policy, as --open-network has none")
        open_network = "unrestricted_network: everything is reached, with no gate"
        draft.egress.append(Egress(name, "warn", open_network, f"write '{_POLICY}' in its place"))


def _network(draft: Draft, node: Node) -> int:
    """Read the lists; return how many phases are named."""
    named = 0
    for phase, _, lists in draft.read.pairs(node, "'network'", [phase.value for phase in Phase]):
        named += 1
        if isinstance(lists, Mapping) and not lists.pairs:
            draft.note(lists, f"network.{phase}", "exactly", ["nothing"])
        for verdict, _, items in draft.read.pairs(lists, f"'network.{phase}'", ("allow", "deny")):
            where = f"network.{phase}.{verdict}"
            for item in draft.items(items, f"'{where}'"):
                _host(draft, item, where, Verdict(verdict), Phase(phase))
    return named


def _host(draft: Draft, item: Scalar, where: str, verdict: Verdict, phase: Phase) -> None:
    host, port = split(item.text)
    if item.text in _EVERYTHING:
        draft.rules(item, where, verdict, ["*"], phases=[phase])
    elif host[:1] != "*" or (host[:2] == "*." and not port):
        draft.rules(item, where, verdict, [item.text], phases=[phase])
    elif draft.canonical(item, item.text) is None:
        return
    elif verdict is Verdict.ALLOW:
        draft.drop(item, where, _NO_FORM)
    elif host in _EVERYTHING:
        draft.rules(item, where, verdict, ["*"], "Kraft gives '*' no port; denied on every port", phases=[phase])
    else:
        name = plain(host).lstrip("*.")
        why = "Kraft has no such wildcard; the widest that it can mean is denied"
        draft.rules(item, where, verdict, [name, f"**.{name}"], why, phases=[phase])
