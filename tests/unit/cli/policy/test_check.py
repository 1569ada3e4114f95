"""tidegate policy check."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Command

POLICY = """\
network:
  runtime:
    allow: [api.example.com, "*.example.org:443", "**.example.net", 1.2.3.4:80]
    ask: ["*"]
"""


def test_each_entry_says_what_it_covers(tidegate: Command) -> None:
    """B11, POL-14: a wildcard says that the apex is not in it, a rule without port that it is for any."""
    Path("p.yaml").write_text(POLICY, encoding="utf-8")
    status, out, err = tidegate("policy", "check", "p.yaml")
    assert (status, err) == (0, "")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "allow api.example.com exactly this name, any port [policy, p.yaml:3:13]" in lines
    expected = "one label in front of example.org, not example.org itself, port 443"
    assert f"allow *.example.org:443 {expected} [policy, p.yaml:3:30]" in lines
    assert (
        "allow **.example.net every name below example.net, not example.net itself, any port [policy, p.yaml:3:51]"
        in lines
    )
    assert "allow 1.2.3.4:80 exactly this address, port 80 [policy, p.yaml:3:69]" in lines
    assert "ask * every name and every public address, any port [policy, p.yaml:4:11]" in lines
    assert "everything else: deny (the phase is closed: the policy names nothing in it)" in lines


def test_a_deny_that_shadows_allows_is_warned_of_once(tidegate: Command) -> None:
    """B13: `deny *` beside allows names the rules it takes everything from, one time."""
    Path("p.yaml").write_text("network: {runtime: {allow: [a.test], deny: ['*']}}\n", encoding="utf-8")
    status, out, err = tidegate("policy", "check", "--quiet", "p.yaml")
    assert (status, out) == (0, "")
    assert err.count("\n") == 1
    assert "'*' (p.yaml:1:45)" in err
    assert "'a.test' (p.yaml:1:29)" in err
    Path("p.yaml").write_text("network: {runtime: {allow: [a.test], deny: [b.test]}}\n", encoding="utf-8")
    assert tidegate("policy", "check", "--quiet", "p.yaml") == (0, "", "")


def test_all_errors_are_said_and_nothing_else(tidegate: Command) -> None:
    """POL-2: exit 2, a line for each error with its place, no output."""
    Path("p.yaml").write_text("tsl: strict\nnetwork: {runtime: {allow: [10.0.0.0/8, a b]}}\n", encoding="utf-8")
    status, out, err = tidegate("policy", "check", "p.yaml")
    assert (status, out) == (2, "")
    assert [line.partition("p.yaml:")[2][:5] for line in err.splitlines()] == ["1:1: ", "2:29:", "2:41:"]


def test_a_folders_policy_is_checked_by_its_own_rules(tidegate: Command) -> None:
    """POL-9: --folder refuses what a folder's file may not hold, and lets hosts pass."""
    Path("p.yaml").write_text("own: exact-host-port\n" + POLICY, encoding="utf-8")
    assert tidegate("policy", "check", "-q", "p.yaml")[0] == 0
    status, _, err = tidegate("policy", "check", "-q", "--folder", "p.yaml")
    assert status == 2
    assert "a folder's policy may not hold this: 'own'" in err
    Path("p.yaml").write_text(POLICY, encoding="utf-8")
    assert tidegate("policy", "check", "-q", "--folder", "p.yaml")[0] == 0


@pytest.mark.parametrize("kind", ["missing", "directory", "binary", "large", "bomb", "device", "unreadable", "fifo"])
def test_files_that_are_no_policy_are_one_clear_line(tidegate: Command, kind: str) -> None:
    """Unreadable, a directory, a binary, 10 MB, exploding aliases: exit 2 and one line, whatever it is."""
    path = Path("p.yaml")
    if kind == "directory":
        path.mkdir()
    elif kind == "binary":
        path.write_bytes(b"\x7fELF\x02\x01\x01\0" + bytes(range(256)) * 40)
    elif kind == "large":
        path.write_bytes(b"# 123456789\n" * 900_000)
    elif kind == "bomb":
        text = "".join(f"k{at}: &k{at} [{', '.join([f'*k{at - 1}' if at else 'x'] * 9)}]\n" for at in range(9))
        path.write_text(text, encoding="utf-8")
    elif kind == "device":
        path = Path("/dev/zero")
    elif kind == "unreadable":
        path.write_text(POLICY, encoding="utf-8")
        path.chmod(0)
        if os.geteuid() == 0:
            path.unlink()
            path.symlink_to("p.yaml")  # root reads everything; a loop of links it does not
    elif kind == "fifo":
        os.mkfifo(path)
    status, out, err = tidegate("policy", "check", str(path))
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert path.name in err
