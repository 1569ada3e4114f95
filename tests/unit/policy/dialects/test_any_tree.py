"""Files that no person wrote: every dialect answers each with a policy or with errors, and never more than it says."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.policy.dialects.told import SUFFIXES
from tidegate.model.errors import UsageError
from tidegate.model.rule import Layer
from tidegate.policy.dialects.imported import Imported, Wanted
from tidegate.policy.dialects.reader import DIALECTS, NAMES, TOML, layer_of, read_dialect
from tidegate.policy.layers import join

if TYPE_CHECKING:
    from collections.abc import Iterator

# A whole file of each, of which parts are taken out, put elsewhere or replaced.
WHOLE: dict[str, dict[str, Any]] = {
    "kraft": {
        "relay_image": "r",
        "repos": [
            {
                "path": "/a",
                "setup_command": "npm ci",
                "sandbox": {
                    "kind": "docker",
                    "image": "i",
                    "network": {
                        "install": {"allow": ["a.test", "*.b.test"]},
                        "runtime": {"allow": ["*", "c.test:80"], "deny": ["d.test", "*.e.test:1"]},
                    },
                },
            },
            {"path": "/b", "sandbox": {"unrestricted_network": True}},
        ],
    },
    "gurtos": {
        "hosts": ["a.test", "*.b.test", "c.test:80", "*.d.test:1"],
        "networkDefault": "none",
        "defaultHosts": ["e.test"],
    },
    "kule": {
        "profile": "balanced",
        "rules": [{"effect": "net.connect", "host": "a.test", "port": 443, "verdict": "pass"}, {"effect": "fs.write"}],
        "remembered": [{"folder": "/", "host": "b.test", "port": 443}],
        "flags": ["--verbose"],
    },
    "sandbox-runtime": {
        "network": {
            "allowedDomains": ["a.test", "*.b.test:1", "[2600::1]"],
            "deniedDomains": ["*:22", "c.b.test"],
            "deniedResolvedAddresses": ["10.0.0.0/8", "8.8.8.8"],
            "allowLocalBinding": True,
        },
        "filesystem": {},
    },
    "claude": {
        "permissions": {"allow": ["WebFetch(domain:a.test)"], "deny": ["WebFetch(domain:b.test)", "Bash(ls)"]},
        "sandbox": {"enabled": True, "network": {"allowedDomains": ["*.c.test"], "deniedDomains": ["d.c.test"]}},
    },
    "codex": {
        "default_permissions": "w",
        "permissions": {
            "w": {
                "extends": ":workspace",
                "network": {
                    "enabled": True,
                    "mode": "limited",
                    "allow_local_binding": True,
                    "domains": {"a.test": "allow", "**.b.test": "allow", "c*.b.test": "deny"},
                    "allowed_domains": ["d.test:1"],
                },
            },
            "v": {"network": {}},
        },
        "network_proxy": {"enabled": True, "policy": {"denied_domains": ["e.test"]}},
    },
    "smokescreen": {
        "version": "v1",
        "services": [{"name": "s", "project": "p", "action": "enforce", "allowed_domains": ["a.test", "*.b.test"]}],
        "default": {"action": "report"},
        "global_deny_list": ["c.b.test"],
        "global_allow_list": ["d.test"],
    },
    "gh-aw": {
        "on": "push",
        "network": {
            "allowed": ["defaults", "node", "a.test", "https://*.b.test"],
            "blocked": ["c.b.test"],
            "firewall": {"ssl-bump": True},
            "hosted-web": {},
        },
    },
}
TEXTS = (
    *("", "a.test", "*.a.test", "**.a.test", "*", "a.test:443", "*.com", "localhost", "127.0.0.1", "[::1]:80", "::1"),
    *(
        "10.0.0.0/8",
        "python",
        "defaults",
        "https://a.test",
        "docker",
        "kit",
        "limited",
        "pass",
        "net.connect",
        "enforce",
    ),
    *("--no-network", "balanced", "v1", "allowlist", "WebFetch(domain:a.test)", "WebFetch(domain:)", "@npm", "\x1b[2J"),
    *(":workspace", "é.test", "a b", "*.*.a.test", "foo.*", "[", "a" * 300, "\ud800"),
)
leaves = st.one_of(st.none(), st.booleans(), st.integers(-1, 70000), st.floats(allow_nan=False), st.sampled_from(TEXTS))
values = st.one_of(leaves, st.lists(leaves, max_size=3), st.dictionaries(st.sampled_from(TEXTS), leaves, max_size=2))


@st.composite
def changed(draw: st.DrawFn, whole: dict[str, Any]) -> dict[str, Any]:
    """Return a whole file with a few changes."""
    tree: dict[str, Any] = copy.deepcopy(whole)
    for _ in range(draw(st.integers(0, 4))):
        places = list(_places(tree))
        if not places:
            break
        holder, key = draw(st.sampled_from(places))
        change = draw(st.sampled_from(("replace", "text", "remove", "rename", "again")))
        if change == "replace":
            holder[key] = draw(values)
        elif change == "text":
            holder[key] = draw(st.sampled_from(TEXTS))
        elif change == "remove":
            del holder[key]
        elif change == "rename" and isinstance(holder, dict):
            holder[draw(st.sampled_from((key[1:], key + "s", "other", *holder)))] = holder.pop(key)
        elif change == "again" and isinstance(holder, list):
            holder.append(copy.deepcopy(holder[key]))
    return tree


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each place of a tree: what holds it, and its key there."""
    inside = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, below in list(inside):
        yield tree, key
        yield from _places(below)


def read(data: bytes, name: str) -> Imported | None:
    """Return what a file became; None where it is refused, and every line of the refusal can be shown."""
    try:
        return read_dialect(data, "file", Wanted(first=True), lambda one: one in SUFFIXES, name)
    except UsageError as error:
        said = error
    assert said.exit_status == 2
    assert all(line.isprintable() for line in str(said).splitlines())
    return None


def toml(tree: dict[str, Any]) -> str:
    """Return a tree as TOML of inline tables, without what TOML has not."""

    def value(one: Any) -> str:
        if isinstance(one, dict):
            return "{" + ", ".join(f"{json.dumps(key)} = {value(item)}" for key, item in one.items()) + "}"
        if isinstance(one, list):
            return "[" + ", ".join(map(value, one)) + "]"
        return json.dumps("" if one is None else one)

    return "".join(f"{json.dumps(key)} = {value(item)}\n" for key, item in tree.items())


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_every_tree_is_answered(name: str, data: st.DataObject) -> None:
    """POL-2, POL-15: errors, or a policy that loads, with no profile but Kule's and everything else denied."""
    tree = data.draw(changed(WHOLE[name]))
    text = toml(tree) if DIALECTS[name].form == TOML else json.dumps(tree)
    imported = read(text.encode("utf-8", "surrogatepass"), name)
    if imported is None:
        return
    assert all(str(entry).isprintable() for entry in imported.entries)
    if imported.refusal[0] or imported.without_gate:
        return
    policy = join(layer_of(imported, Layer.COMMAND_LINE))
    assert policy.default.value == ("ask" if policy.profile else "deny")
    assert policy.profile is None or (name == "kule" and policy.profile in {"balanced", "careful"})
    assert {rule.source.partition(":")[0] for rule in policy.rules} <= {"file", "preset npm", "preset yarn"} | {
        f"preset {preset}" for preset in ("crates", "go", "maven", "nuget", "pypi", "rubygems")
    }


@given(data=st.binary(max_size=80), name=st.sampled_from((*NAMES, "")))
def test_any_bytes_are_answered(data: bytes, name: str) -> None:
    """POL-2: a binary file is one error."""
    read(data, name)


@pytest.mark.parametrize("name", [name for name in NAMES if DIALECTS[name].form != TOML])
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_what_is_recognised_is_what_its_name_reads(name: str, data: st.DataObject) -> None:
    """POL-15: `--policy FILE` and `--dialect NAME` agree."""
    text = json.dumps(data.draw(changed(WHOLE[name]))).encode("utf-8", "surrogatepass")
    imported = read(text, "")
    if imported is not None:
        assert read(text, imported.dialect) == imported
