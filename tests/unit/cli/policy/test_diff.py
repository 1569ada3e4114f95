"""tidegate policy diff."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import Command


def write(name: str, *hosts: str, more: str = "") -> None:
    """Write a policy that allows these hosts."""
    Path(name).write_text(more + f"network: {{runtime: {{allow: {json.dumps(hosts)}}}}}\n", encoding="utf-8")


def test_what_b_adds_is_named_and_is_exit_1(tidegate: Command) -> None:
    """POL-14: a host and a wildcard that only B has are named with their places; the exit status says so."""
    write("a.yaml", "api.example.com")
    write("b.yaml", "api.example.com", "*.example.org:443")
    status, out, err = tidegate("policy", "diff", "a.yaml", "b.yaml")
    assert (status, err) == (1, "")
    assert out.count("\n") == 1
    assert "*.example.org:443" in out
    assert "b.yaml:1:48" in out


def test_a_narrower_b_is_exit_0(tidegate: Command) -> None:
    """The other direction, and the same file, let nothing more through."""
    write("a.yaml", "api.example.com", "*.example.org:443")
    write("b.yaml", "api.example.com")
    assert tidegate("policy", "diff", "a.yaml", "b.yaml") == (0, "nothing more passes\n", "")
    assert tidegate("policy", "diff", "a.yaml", "a.yaml")[0] == 0


def test_settings_are_compared_and_json_is_for_machines(tidegate: Command) -> None:
    """A policy that drops `tls: strict` lets more through, in words and as JSON."""
    write("a.yaml", "api.example.com", more="tls: strict\n")
    write("b.yaml", "api.example.com", "other.example")
    status, out, _ = tidegate("policy", "diff", "a.yaml", "b.yaml", "--json")
    assert status == 1
    found = json.loads(out)
    assert [(change["hosts"], change["before"], change["after"]) for change in found["hosts"]] == [
        (["other.example"], "deny", "allow")
    ]
    assert any("tls" in line for line in found["settings"])


def test_a_bad_file_is_named(tidegate: Command) -> None:
    """POL-2: the error says which of the two is wrong."""
    write("a.yaml", "api.example.com")
    write("b.yaml", "a b")
    status, out, err = tidegate("policy", "diff", "a.yaml", "b.yaml")
    assert (status, out) == (2, "")
    assert "b.yaml:1:29: " in err
