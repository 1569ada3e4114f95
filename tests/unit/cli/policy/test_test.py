"""tidegate policy test."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import Command

POLICY = "network: {runtime: {allow: [a.com, 127.0.0.1], ask: [b.com]}, install: {allow: [c.com]}}\n"


def write(expect: str, *, policy: str = "policy: p.yaml\n") -> None:
    """Write the policy and the file of expectations, both in a folder."""
    Path("ci").mkdir(exist_ok=True)
    Path("ci/p.yaml").write_text(POLICY, encoding="utf-8")
    Path("ci/t.yaml").write_text(policy + "expect:\n" + expect, encoding="utf-8")


def test_expectations_that_hold_are_exit_0(tidegate: Command) -> None:
    """POL-14: allow, ask and deny by phase; the policy is found beside the file."""
    write("  - allow: a.com\n  - ask: b.com\n  - deny: [c.com, 1.1.1.1]\n  - {allow: c.com, phase: install}\n")
    assert tidegate("policy", "test", "ci/t.yaml") == (0, "5 of 5 expectations hold\n", "")


def test_one_that_fails_is_named_and_exit_1(tidegate: Command) -> None:
    """POL-14: the failing line with its place, what was expected, what came, and by which rule."""
    write("  - allow: a.com\n  - deny: a.com\n")
    status, out, _ = tidegate("policy", "test", "ci/t.yaml")
    assert status == 1
    first, last = out.splitlines()
    assert first.startswith("ci/t.yaml:4:11: allow, expected deny: a.com:443: ")
    assert last == "1 of 2 expectations hold"


def test_literals_are_judged_as_the_gate_judges_them(tidegate: Command) -> None:
    """ADR-2: a rule for an own address without a port admits nothing, and the test sees that."""
    write("  - deny: 127.0.0.1\n")
    assert tidegate("policy", "test", "ci/t.yaml")[0] == 0


def test_another_policy_can_be_given(tidegate: Command) -> None:
    """--policy stands in for the one the file names; without either it is exit 2."""
    write("  - deny: a.com\n", policy="")
    status, _, err = tidegate("policy", "test", "ci/t.yaml")
    assert status == 2
    assert "no policy to test" in err
    Path("other.yaml").write_text("network: {runtime: {deny: [a.com]}}\n", encoding="utf-8")
    assert tidegate("policy", "test", "--policy", "other.yaml", "ci/t.yaml")[0] == 0


def test_the_users_configuration_does_not_count(tidegate: Command, tmp_path: Path) -> None:
    """For CI the answer is the same everywhere: only the policy's own file decides."""
    config = tmp_path / "config" / "tidegate"
    config.mkdir(parents=True)
    (config / "policy.yaml").write_text("network: {runtime: {deny: [a.com]}}\n", encoding="utf-8")
    write("  - allow: a.com\n")
    assert tidegate("policy", "test", "ci/t.yaml")[0] == 0
