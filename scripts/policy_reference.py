"""The generated parts of docs/policy.md and docs/files.md: tables made from the enums, presets, bounds and commands of the code.

Text between `<!-- generated: NAME -->` and `<!-- end -->` is replaced by what `BLOCKS[NAME]` returns; everything else
is written by hand. scripts/docs runs this; tests/unit/test_policy_reference.py fails when the file is stale.

What a rule matches, why a text is refused and what `explain` prints are asked of the code, not described.
"""

# ruff: noqa: E501 - rows of tables are as long as they are

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Any

import click
import yaml

from scripts.page_parts import fill
from tidegate.cli.policy import policy_group
from tidegate.cli.policy.explain import lines
from tidegate.model.destination import parse_authority
from tidegate.model.limits import Limits
from tidegate.model.reason import Reason
from tidegate.model.rule import Layer
from tidegate.model.verdict import Phase
from tidegate.policy import harnesses, presets
from tidegate.policy.decide import decide
from tidegate.policy.explain import explain
from tidegate.policy.harnesses.harness_file import load_harness
from tidegate.policy.layers import DEFAULT_REGISTRIES, join
from tidegate.policy.loader import LIMIT_BOUNDS, POLICY_KEYS, load_policy
from tidegate.policy.never_names import NEVER_NAMES
from tidegate.policy.profiles import PROFILES
from tidegate.policy.reading import plain_number
from tidegate.policy.rules import RuleError, parse_rule
from tidegate.runtime.later_files import HOME, OPEN, WHY, WORKSPACE

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(ROOT, "docs", "policy.md")
FILES_PAGE = os.path.join(ROOT, "docs", "files.md")

KEYS = {
    "profile": ("`balanced`, `careful`, `closed`, `audit`", "none", "[a profile](#profiles)"),
    "default": ("`ask`, `deny`", "of the profile, else `deny`", "what a host gets that no rule matches"),
    "network": ("`install`, `runtime`: lists `allow`, `ask`, `deny`", "no host", "[rules](#rules), by [phase](#phases)"),
    "presets": ("preset → list of hosts", "–", "[mirrors](#presets-and-mirrors) in place of a preset's hosts"),
    "private": ("`never`, `exact-host`, `exact-host-port`", "`exact-host-port`", "[what admits private addresses](#private-addresses-and-this-machine)"),
    "own": ("`never`, `exact-host-port`", "`exact-host-port`", "[what admits this machine's addresses](#private-addresses-and-this-machine)"),
    "protected_ports": ("list of ports", "–", "ports of this machine that no rule opens"),
    "tls": ("`any`, `strict`", "`any`", "`strict` refuses what is no TLS, and TLS that names no host, inside tunnels"),
    "limits": ("mapping", "see below", "[bounds of the gate](#limits)"),
    "upstream": ("`resolve`: `check`, `skip`", "`check`", "whether addresses are checked here when an upstream proxy is used"),
    "locked": ("`true`, `false`; the administrator: a list", "`false`", "of [layers](#layers-where-policies-come-from) above only denies count"),
    "files": ("`strict`, `normal`", "`strict` as root, else `normal`", "[what may be written](files.md)"),
    "registries": ("`read`, `tunnel`", f"`{DEFAULT_REGISTRIES}`", "`read`: [only what reads](#package-registries) passes to the hosts of presets; `tunnel`: they are not read inside TLS"),
    "git": ("`read`, `write`, `{read: [HOST/PATH, …], write: […]}`", "`write`", "hosts of repositories that are [held to fetch](#git), whatever rule lets them through"),
    "inspect": ("`{never: [HOST, …]}`", "none", "hosts whose TLS is [never read](inspection.md), for pinned and mutual-TLS clients"),
    "setup": ("a text for `/bin/sh -c`, or a list of arguments", "none", "[a command](#the-set-up-command) that runs once before a task's first"),
}  # fmt: skip

LIMITS = {
    "connections": "connections open at once; one more is dropped and recorded",
    "header_bytes": "bytes of a request's or response's headers",
    "header_fields": "fields in them",
    "target_bytes": "bytes of a request's target",
    "header_seconds": "time for the headers to arrive",
    "connect_seconds": "time to connect to one address",
    "total_seconds": "time to connect in all",
    "resolve_seconds": "time to resolve a name",
    "idle_seconds": "time in which nothing moves in a tunnel, either way; 0 is for ever",
}

RULES = (
    "api.example.com",
    "api.example.com:443",
    "*.example.com",
    "**.example.com",
    "1.2.3.4",
    "[2600:beef::1]:443",
    "*",
    "bücher.example",
)
ASKED = (
    "example.com:443", "api.example.com:443", "api.example.com:80", "a.b.example.com:443", "notexample.com:443",
    "1.2.3.4:443", "[2600:beef::1]:443", "xn--bcher-kva.example:443",
)  # fmt: skip
COVERS = {
    "api.example.com": "that name",
    "api.example.com:443": "that name, on that port",
    "*.example.com": "exactly one label in front",
    "**.example.com": "one or more labels in front",
    "1.2.3.4": "that address",
    "[2600:beef::1]:443": "that address; IPv6 stands in brackets",
    "*": "every name and every public address; `**` means the same",
    "bücher.example": "that name, compared as its A-label",
}
REFUSED = (
    "10.0.0.0/8", "https://x.com/", "x.com/path", ".x.com", "*x.com", "a.*.com", "a.com b.com", "a.com,b.com", "a..com",
    "a.com:0", "a.com:*", "010.0.0.1", "0x7f.1", "2600:beef::1", "-a.com", "u@a.com", "\uff41.com",
)  # fmt: skip


def table(head: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> str:
    """Return a Markdown table."""
    out = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    out += ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(out)


def keys() -> str:
    """Every key of the file format, and what it does here."""
    missing = set(POLICY_KEYS) - set(KEYS)
    assert not missing, f"no text for {missing}"
    rows = [(f"`{key}`", *KEYS[key]) for key in POLICY_KEYS if key in KEYS]
    return table(("key", "values", "default", "meaning"), rows)


def rules() -> str:
    """Each form of a rule with hosts that it matches, found by deciding them."""
    rows = []
    for text in RULES:
        policy = join(load_policy(f"network: {{runtime: {{allow: ['{text}']}}}}".encode(), "p", Layer.COMMAND_LINE))
        hits = [asked for asked in ASKED if decide(policy, parse_authority(asked), Phase.RUNTIME).allowed]
        misses = [asked for asked in ASKED if asked not in hits]
        rows.append((f"`{text}`", COVERS[text], _some(hits), _some(misses)))
    return table(("rule", "covers", "matches", "does not match"), rows)


def _some(texts: list[str]) -> str:
    return ", ".join(f"`{text}`" for text in texts[:3]) or "–"


def refused() -> str:
    """Texts that are no rule, with the error that they get."""
    rows = []
    for text in REFUSED:
        try:
            parse_rule(text)
        except RuleError as error:
            rows.append((f"`{text}`", error.what, error.advice.replace("*", "\\*")))
        else:
            raise AssertionError(f"{text!r} is a rule")
    return table(("text", "what is wrong", "write"), rows)


def never() -> str:
    """The metadata names."""
    return ", ".join(f"`{name}`" for name in sorted(NEVER_NAMES)) + "."


def profiles() -> str:
    """The profiles."""
    rows = [
        (
            f"`{profile.name}`",
            ", ".join(f"`@{name}`" for name in profile.presets) or "–",
            profile.default.value,
            profile.about,
        )
        for profile in PROFILES.values()
    ]
    return table(("profile", "presets", "default", "meaning"), rows)


def preset_hosts() -> str:
    """Every host of every preset, with why it is there and where that is documented."""
    folder = os.path.dirname(presets.__file__)
    rows = []
    for name in presets.PRESET_NAMES:
        path = os.path.join(folder, f"{name}.yaml")
        if not os.path.exists(path):
            rows.append((f"`@{name}`", ", ".join(f"`@{member}`" for member in presets.members(name)), "all of these"))
            continue
        with open(path, encoding="utf-8") as file:
            data = yaml.safe_load(file)
        for at, host in enumerate(data["hosts"]):
            first = f"`@{name}`" if at == 0 else ""
            rows.append((first, f"`{host['host']}`", f"{host['why']} ([source]({host['source']}))"))
    return table(("preset", "hosts", "what for"), rows)


def harness_hosts() -> str:
    """Every host of every harness: whether it is verified, what for, and where that is documented."""
    folder = os.path.dirname(harnesses.__file__)
    rows = []
    for name in harnesses.HARNESS_NAMES:
        with open(os.path.join(folder, f"{name}.yaml"), "rb") as file:
            harness = load_harness(file.read(), f"{name}.yaml")
        for at, host in enumerate(harness.hosts):
            rows.append(
                (
                    f"`{name}`: {harness.about}, `{harness.command}`" if at == 0 else "",
                    f"`{host.rule}`",
                    "yes" if host.rule in harness.model_api else "–",
                    "verified" if host.verified else "unverified",
                    f"{host.why} ([source]({host.reference}))",
                )
            )
    return table(("harness, command", "host", "model API", "checked", "what for"), rows)


def limits() -> str:
    """The bounds of the gate."""
    defaults = Limits()
    rows = [
        (
            f"`{name}`",
            plain_number(getattr(defaults, name)),
            f"{plain_number(least)} – {plain_number(most)}",
            LIMITS[name],
        )
        for name, (least, most, _) in LIMIT_BOUNDS.items()
    ]
    return table(("limit", "default", "may be", "meaning"), rows)


def commands() -> str:
    """The help of each command."""
    group = policy_group()
    out = []
    for name, command in group.commands.items():
        context = click.Context(command, info_name=f"tidegate policy {name}", terminal_width=100)
        out.append(f"```text\n{command.get_help(context)}\n```")
    return "\n\n".join(out)


def explained() -> str:
    """Explanations, of the page's first policy."""
    with open(PAGE, encoding="utf-8") as file:
        text = re.findall(r"```yaml\n(# policy.yaml\n.*?)```", file.read(), re.DOTALL)[0]
    policy = join(load_policy(text.encode(), "policy.yaml", Layer.COMMAND_LINE))
    out = []
    for target in ("img.cdn.example.com", "cdn.example.com", "telemetry.example.com"):
        out.append(f"$ tidegate policy explain --policy policy.yaml {target}")
        out += lines(explain(policy, parse_authority(target, 443), Phase.RUNTIME))
    return "```text\n" + "\n".join(out) + "\n```"


def reasons() -> str:
    """Every reason with its renderings."""
    rows = [
        (
            f"`{reason.word}`",
            reason.sentence,
            reason.status or "–",
            f"`{reason.proxy_error}`" if reason.proxy_error else "–",
        )
        for reason in Reason
    ]
    return table(("reason", "sentence", "HTTP status", "Proxy-Status error"), rows)


def later_files() -> str:
    """What would run outside later, a row for each folder and kind."""
    rows = []
    for place, groups in (("~", (*HOME, *OPEN)), ("the workspace", WORKSPACE)):
        for sub, kind, names in groups:
            folder = f"{place}/{sub}".rstrip("/")
            listed = ", ".join(f"`{name}`" for name in names)
            rows.append((kind, f"`{folder}`" if place == "~" else folder, listed, *WHY[kind]))
    return table(("what", "in", "names", "they", "see"), rows)


BLOCKS = {
    "keys": keys,
    "rules": rules,
    "refused": refused,
    "never": never,
    "profiles": profiles,
    "presets": preset_hosts,
    "harnesses": harness_hosts,
    "limits": limits,
    "commands": commands,
    "explain": explained,
    "reasons": reasons,
}


def main(arguments: list[str]) -> int:
    """Write the pages, or with --check compare them."""
    check = arguments == ["--check"]
    return max(fill(PAGE, BLOCKS, check=check), fill(FILES_PAGE, {"later": later_files}, check=check))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
