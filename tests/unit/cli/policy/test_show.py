"""tidegate policy show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import Command


def test_without_any_policy_it_is_the_balanced_profile(tidegate: Command) -> None:
    """POL-10: registries pass in both phases, everything else is asked."""
    status, out, err = tidegate("policy", "show", "--json")
    assert (status, err) == (0, "")
    shown = json.loads(out)
    assert (shown["profile"], shown["default"], shown["closed_phases"]) == ("balanced", "ask", [])
    pypi = [rule for rule in shown["rules"] if rule["rule"] == "pypi.org:443"]
    assert [(rule["phase"], rule["verdict"], rule["name"]) for rule in pypi] == [
        ("install", "allow", "package-registries"),
        ("runtime", "allow", "package-registries"),
    ]


def test_layers_are_joined_as_run_joins_them(tidegate: Command, tmp_path: Path) -> None:
    """POL-8: the user's denies stay under --policy, the user's allows do not, and options come on top."""
    config = tmp_path / "config" / "tidegate"
    config.mkdir(parents=True)
    (config / "policy.yaml").write_text(
        "network: {runtime: {allow: [mine.example], deny: [never.example]}}\n", encoding="utf-8"
    )
    Path("p.yaml").write_text("network: {runtime: {allow: [api.example.com]}}\n", encoding="utf-8")
    status, out, _ = tidegate("policy", "show", "--policy", "p.yaml", "--allow", "more.example:443", "--json")
    assert status == 0
    rules = {
        (rule["verdict"], rule["rule"], rule["name"]) for rule in json.loads(out)["rules"] if rule["phase"] == "runtime"
    }
    assert rules == {
        ("allow", "api.example.com", "policy"),
        ("allow", "more.example:443", "command-line"),
        ("deny", "never.example", "user-config"),
    }


def test_what_registries_are_is_shown(tidegate: Command) -> None:
    """INS-7, B11: the setting is a line of its own; the option changes it, and a word that is none is named."""
    assert "\n  registries         read\n" in tidegate("policy", "show")[1]
    status, out, _ = tidegate("policy", "show", "--registries", "tunnel", "--json")
    assert (status, json.loads(out)["settings"]["registries"]) == (0, "tunnel")
    status, out, err = tidegate("policy", "show", "--registries", "write")
    assert (status, out) == (2, "")
    assert err == "tidegate: there is no --registries 'write': one of read, tunnel\n"


def test_a_folders_policy_needs_a_word(tidegate: Command) -> None:
    """POL-9: a tidegate.yaml that nobody spoke about is exit 78 as with run; trusted or set aside it works."""
    Path("tidegate.yaml").write_text("network: {runtime: {allow: [folder.example]}}\n", encoding="utf-8")
    status, out, err = tidegate("policy", "show")
    assert (status, out) == (78, "")
    assert "--trust-folder" in err
    assert "folder.example" in tidegate("policy", "show", "--trust-folder")[1]
    assert "folder.example" not in tidegate("policy", "show", "--no-folder-policy")[1]


def test_a_harness_is_shown_with_its_hosts(tidegate: Command) -> None:
    """POL-12: `--harness` adds its hosts to the runtime rules, under its name and in no other phase."""
    status, out, _ = tidegate("policy", "show", "--harness", "codex", "--json")
    assert status == 0
    rules = [rule for rule in json.loads(out)["rules"] if rule["name"] == "harness:codex"]
    assert [(rule["phase"], rule["verdict"], rule["rule"], rule["source"]) for rule in rules] == [
        ("runtime", "allow", host, "harness codex")
        for host in ("api.openai.com:443", "chatgpt.com:443", "auth.openai.com:443")
    ]
    assert "harness:" not in tidegate("policy", "show", "--json")[1]
