"""tidegate.cli.policy.new_hosts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.unit.journal.contact_lines import line, no, written
from tests.unit.journal.events import event
from tidegate.journal.line import lost_line
from tidegate.journal.report import report_text
from tidegate.journal.summary import row_of
from tidegate.model.reason import Reason

if TYPE_CHECKING:
    from conftest import Command


def policy(*hosts: str) -> str:
    """Write a policy that allows these, and return its path."""
    Path("p.yaml").write_text(f"network: {{runtime: {{allow: [{', '.join(hosts)}]}}}}\n")
    return "p.yaml"


def test_all_named_is_exit_0(tidegate: Command) -> None:
    """JRN-7: what the policy names is no news, and a pass says of how much; a refusal reached nothing."""
    path = written(Path("n.jsonl"), line(), line(), no())
    assert tidegate("policy", "new-hosts", "--against", policy("a.test"), path) == (
        0,
        "the one place reached in 2 connections is named\n",
        "",
    )


def test_a_new_host_is_exit_1_and_one_line(tidegate: Command) -> None:
    """JRN-7: host and port, how often, how, since when and why, in plain text without a terminal's controls."""
    path = written(Path("n.jsonl"), line(), line(host="new.test"), line(host="new.test"), line(port=80))
    status, out, err = tidegate("policy", "new-hosts", "--against", policy("a.test:443"), path)
    assert (status, err) == (1, "")
    assert out.splitlines() == [
        (
            "new: a.test:80: tunneled x1 in runtime, first at 2026-11-29T00:00:00.125Z: "
            "a rule names this host, but with another port"
        ),
        "new: new.test:443: tunneled x2 in runtime, first at 2026-11-29T00:00:00.125Z: no rule allows it",
        "2 new, 1 named, in 4 connections",
    ]


def test_tries_count_when_asked_for(tidegate: Command) -> None:
    """JRN-7: --tried has refusals and look-ups, hosts that are none among them, escaped."""
    path = written(Path("n.jsonl"), no(), no(host="x\x1b[31m", port=0, reason=Reason.BAD_HOST))
    assert tidegate("policy", "new-hosts", "--against", policy("a.test"), path)[:2] == (
        0,
        "nothing was reached, so nothing is new\n",
    )
    status, out, _err = tidegate("policy", "new-hosts", "--tried", "--against", "p.yaml", path)
    assert status == 1
    assert "b.test:443: refused (no-rule) x1 in runtime" in out
    assert "x\\x1b[31m: refused (bad-host) x1" in out
    assert "\x1b" not in out


@pytest.mark.parametrize(
    "host", ["::error file=x::", "##[error]x", "a##vso[task.complete]", "\n::error::", "[::add-mask::x"]
)
def test_no_host_gives_an_order_to_a_ci(tidegate: Command, host: str) -> None:
    """JRN-7: systems for CI read orders from what a build prints; what a task asked for gives none, nor in comments."""
    path = written(Path("n.jsonl"), no(host=host, reason=Reason.BAD_HOST), line(host=host))
    for argv in (("new-hosts", "--tried", "--against", policy("b.test"), path), ("learn", path)):
        _status, out, err = tidegate("policy", *argv)
        for said in (out + err).splitlines():
            assert not said.startswith(("::", "##"))
            assert "##" not in said


@pytest.mark.parametrize(
    ("lines", "status", "said", "noted"),
    [
        ([], 0, "nothing was reached", "has no connection at all: nothing in it was looked at"),
        ([line(), line()[:30]], 0, "the one place", "the last line of n.jsonl is not whole, and was left out"),
        ([line(), lost_line(0, "t", 4, "ENOSPC")], 1, "4 connections cannot be checked", "lacks 4 connections"),
        ([line(), no(host="*", port=0, count=9)], 0, "the one place", "lacks the hosts of 9 refusals"),
    ],
    ids=["empty", "torn", "lost", "folded"],
)
def test_a_record_that_is_not_whole_does_not_pass_in_silence(
    tidegate: Command, lines: list[bytes], status: int, said: str, noted: str
) -> None:
    """JRN-7: an empty record says so, a torn line too; connections that are not on record were not checked: exit 1."""
    path = written(Path("n.jsonl"), *lines)
    found, out, err = tidegate("policy", "new-hosts", "--against", policy("a.test"), path)
    assert found == status
    assert said in out
    assert noted in err


def test_folded_tries_are_not_named(tidegate: Command) -> None:
    """JRN-7: with --tried a flood whose hosts are not on record fails."""
    path = written(Path("n.jsonl"), line(), no(host="*", port=0, count=9))
    status, out, _err = tidegate("policy", "new-hosts", "--tried", "--against", policy("a.test"), path)
    assert status == 1
    assert "9 connections cannot be checked" in out


def test_a_report_that_did_not_fit_fails(tidegate: Command) -> None:
    """JRN-7: a report holds 200 kinds; what did not fit was not looked at."""
    Path("r.json").write_text(report_text([row_of(event(), 1, 0, 0)], 0, exit_status=0))
    assert tidegate("policy", "new-hosts", "--against", policy("a.test"), "r.json")[0] == 0
    Path("r.json").write_text(report_text([row_of(event(), 1, 0, 0)], 3, exit_status=0))
    assert tidegate("policy", "new-hosts", "--against", "p.yaml", "r.json")[0] == 1


def test_bad_input_is_exit_2_with_its_line(tidegate: Command) -> None:
    """JRN-7, HLD-16: a line that is none, a policy that is none, a record that is not there."""
    path = written(Path("n.jsonl"), line(), b"{}\n")
    status, out, err = tidegate("policy", "new-hosts", "--against", policy("a.test"), path)
    assert (status, out) == (2, "")
    assert "n.jsonl:2: this is no line of a task's record" in err
    assert tidegate("policy", "new-hosts", path)[0] == 2
    assert tidegate("policy", "new-hosts", "--against", "p.yaml")[0] == 2
    assert tidegate("policy", "new-hosts", "--against", "none", path)[0] == 2
    assert tidegate("policy", "new-hosts", "--against", "p.yaml", "./none")[0] == 2
    assert tidegate("policy", "new-hosts", "--against", "p.yaml", "20261129-none")[0] == 2


def test_a_tasks_tools_are_no_new_host(tidegate: Command) -> None:
    """JRN-7, SRV-6: their name is the gate's own, and no policy has it; let through by a rule, it is new."""
    tools = {"host": "tools.tidegate.internal", "port": 80}
    path = written(Path("n.jsonl"), line(), line(**tools, name="tools", source="--tool"))
    status, out, _err = tidegate("policy", "new-hosts", "--tried", "--against", policy("a.test"), path)
    assert (status, out) == (0, "the one place tried in 1 connection is named\n")
    status, out, _err = tidegate("policy", "learn", path)
    assert status == 0
    assert "tools.tidegate" not in out
    path = written(Path("n.jsonl"), line(**tools))
    assert tidegate("policy", "new-hosts", "--against", "p.yaml", path)[0] == 1


def test_an_agents_hosts_are_named_with_its_harness(tidegate: Command) -> None:
    """JRN-7, POL-12: a policy does not name the hosts that a harness brings; --harness says that they are known."""
    path = written(Path("n.jsonl"), line(host="api.anthropic.com", name="harness:claude"))
    assert tidegate("policy", "new-hosts", "--against", policy("a.test"), path)[0] == 1
    assert tidegate("policy", "new-hosts", "--harness", "claude", "--against", "p.yaml", path)[0] == 0


def test_json_has_all_of_it(tidegate: Command) -> None:
    """JRN-7: for machines, with what each record lacks."""
    path = written(Path("n.jsonl"), line(), line(host="new.test"), line()[:9])
    status, out, _err = tidegate("policy", "new-hosts", "--json", "--against", policy("a.test"), path)
    assert status == 1
    assert json.loads(out) == {
        "ok": False,
        "verified": True,
        "new": [
            {
                "host": "new.test", "port": 443, "phase": "runtime", "count": 1, "how": {"tunneled": 1},
                "first": "2026-11-29T00:00:00.125Z", "why": "no rule allows it",
            }
        ],
        "named": 1,
        "connections": 2,
        "more": 0,
        "lacking": 0,
        "records": [{"name": "n.jsonl", "lines": 2, "empty": False, "torn": True, "lost": 0, "folded": 0}],
    }  # fmt: skip
