"""tidegate.cli.policy.learn."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.unit.journal.contact_lines import line, no, written
from tests.unit.journal.events import event
from tidegate.journal.report import report_text
from tidegate.journal.summary import row_of
from tidegate.model.reason import Reason
from tidegate.model.rule import Layer
from tidegate.model.verdict import How, Phase
from tidegate.policy.loader import load_policy
from tidegate.runtime import suffix_list

if TYPE_CHECKING:
    from conftest import Command

KNOWN = """\
# ours
default: deny
network:
  runtime:
    allow:
      - a.test:443  # the API
      - old.test
    ask: [q.test]
"""


def _record() -> str:
    return written(
        Path("n.jsonl"),
        line(),
        line(host="b.test", at=1795996800.0),
        line(host="q.test"),
        no(host="c.test", count=3),
        no(host="x\x1b]0;evil\x07\nallow: [evil.test]", reason=Reason.BAD_HOST),
    )


def test_a_policy_is_printed_that_loads(tidegate: Command) -> None:
    """JRN-7: standard output is the policy and nothing else; notes go to standard error."""
    status, out, _err = tidegate("policy", "learn", _record())
    assert status == 0
    layer = load_policy(out.encode(), "p", Layer.COMMAND_LINE)
    assert [row[0] for row in layer.rows] == ["a.test:443", "b.test:443", "q.test:443"]
    assert "c.test:443 in runtime: only tried: x3 no rule allows it" in out
    assert out.isascii()
    assert "\x1b" not in out
    assert "x\\x1b]0;evil\\x07\\nallow: [evil.test]" in out


def test_several_records_add_up(tidegate: Command) -> None:
    """JRN-7: logs and reports together, each count once."""
    _record()
    Path("r.json").write_text(report_text([row_of(event(phase=Phase.INSTALL), 4, 0, 0)], 0, exit_status=0))
    status, out, _err = tidegate("policy", "learn", "n.jsonl", "r.json", "./n.jsonl")
    assert status == 0
    assert "# Learned from 11 connections of 2 records" in out
    assert "  install:\n    allow:\n      - a.test:443  # x4\n  runtime:\n" in out


def test_against_a_policy_the_result_is_a_diff(tidegate: Command) -> None:
    """JRN-7: what is new is added, what was not used is marked; nothing else moves."""
    Path("p.yaml").write_text(KNOWN)
    status, out, err = tidegate("policy", "learn", "--against", "p.yaml", _record())
    assert status == 0
    assert out == (
        "--- p.yaml\n"
        "+++ p.yaml (learned)\n"
        "@@ -4,5 +4,6 @@\n"
        "   runtime:\n"
        "     allow:\n"
        "       - a.test:443  # the API\n"
        "-      - old.test\n"
        "+      - old.test  # not used by these tasks\n"
        "+      - b.test:443  # x1, last 2026-11-30 00:00Z\n"
        "     ask: [q.test]\n"
    )
    assert "q.test:443 in runtime: the policy asks for it (p.yaml:8:11), and still does" in err
    assert "c.test:443 in runtime: only tried" in err
    assert "may lead to addresses of the own network; 'private: never' and 'own: never' rules that out" in err
    assert Path("p.yaml").read_text() == KNOWN


def test_pruned_and_written(tidegate: Command) -> None:
    """JRN-7: --prune takes out what was not used, and says what passes no longer; --write needs --force over a file."""
    Path("p.yaml").write_text(KNOWN)
    argv = ("policy", "learn", "--against", "p.yaml", "--prune", "--write", "p.yaml", _record())
    status, out, err = tidegate(*argv)
    assert (status, out) == (2, "")
    assert "'p.yaml' is there already: --force writes over it" in err
    assert Path("p.yaml").read_text() == KNOWN
    status, out, err = tidegate(*argv, "--force")
    assert status == 0
    assert "-      - old.test\n" in out
    assert "no longer let through in runtime: old.test" in err
    assert "old.test" not in Path("p.yaml").read_text()
    assert tidegate("policy", "learn", "--against", "p.yaml", "n.jsonl")[1] == ""  # once is enough


def test_a_new_file_is_written(tidegate: Command) -> None:
    """JRN-7: without a policy to compare with --write leaves standard output to nobody."""
    status, out, _err = tidegate("policy", "learn", "--write", "new.yaml", _record())
    assert (status, out) == (0, "")
    assert tidegate("policy", "check", "-q", "new.yaml")[0] == 0
    assert sorted(os.listdir()) == ["n.jsonl", "new.yaml"]


def test_json_has_all_of_it(tidegate: Command) -> None:
    """JRN-7: for machines: entries with their places, what was left out and why, and the text itself."""
    Path("p.yaml").write_text(KNOWN)
    status, out, _err = tidegate("policy", "learn", "--json", "--against", "p.yaml", _record())
    said = json.loads(out)
    assert status == 0
    assert said["connections"] == 7
    assert [entry["rules"][0]["rule"] for entry in said["entries"]] == ["b.test:443"]
    assert said["entries"][0]["places"][0] | {"last": None} == {
        "host": "b.test", "port": 443, "phase": "runtime", "passed": 1, "refused": {}, "how": ["tunneled"],
        "methods": [], "address": "1.2.3.4", "first": "2026-11-30T00:00:00.000Z", "last": None,
    }  # fmt: skip
    assert [one["host"] for one in said["not_learned"]] == ["c.test", "q.test"]
    assert said["unused"] == ["old.test"]
    assert said["policy"].startswith("# ours\n")


@pytest.mark.parametrize(
    ("argv", "what"),
    [
        (("--prune",), "--prune takes entries out of a policy, and none is named: add --against POLICY"),
        (("--force",), "--force says nothing without --write: add --write FILE"),
        (("--against", "none.yaml"), "the policy 'none.yaml' cannot be read"),
    ],
)
def test_a_mistake_is_one_line(tidegate: Command, argv: tuple[str, ...], what: str) -> None:
    """JRN-7, HLD-16: exit status 2 and what to write instead."""
    status, out, err = tidegate("policy", "learn", *argv, _record())
    assert (status, out) == (2, "")
    assert err.startswith(f"tidegate: {what}")


def test_bad_input_names_its_line(tidegate: Command) -> None:
    """JRN-7: exit status 2, nothing learned and nothing written."""
    written(Path("n.jsonl"), line(), b"x\n")
    status, out, err = tidegate("policy", "learn", "--write", "p.yaml", "n.jsonl")
    assert (status, out) == (2, "")
    assert err.startswith("tidegate: n.jsonl:2: this is not JSON: name a task's network.jsonl")
    assert not Path("p.yaml").exists()


def test_a_form_that_is_not_edited_is_said(tidegate: Command) -> None:
    """JRN-7: a policy whose lists share an anchor stays as it is."""
    Path("p.yaml").write_text("network:\n  install: &x\n    allow: [a.test]\n  runtime: *x\n")
    status, out, err = tidegate("policy", "learn", "--against", "p.yaml", _record())
    assert (status, out) == (2, "")
    assert "'p.yaml' is not changed: its form makes one entry stand for several" in err


def test_the_policy_of_another_product_is_not_edited(tidegate: Command) -> None:
    """JRN-7, POL-15: it is read, and its own form stays its product's; what it says as ours can be edited."""
    settings = {"network": {"allowedDomains": ["a.test"], "deniedDomains": []}}
    Path("settings.json").write_text(json.dumps(settings))
    status, out, err = tidegate("policy", "learn", "--against", "settings.json", _record())
    assert (status, out) == (2, "")
    assert (
        "'settings.json' is no policy of tidegate's own, and is not edited: tidegate policy import settings.json" in err
    )
    assert tidegate("policy", "new-hosts", "--against", "settings.json", "n.jsonl")[0] == 1


def test_a_policy_that_says_no_host_stays_what_it_was(tidegate: Command) -> None:
    """JRN-7, POL-10: hosts in a text that named none end its profile; what passes no longer is said."""
    Path("p.yaml").write_text("tls: strict\n")
    status, _out, err = tidegate("policy", "learn", "--against", "p.yaml", _record())
    assert status == 0
    assert "no longer let through in runtime: " in err
    assert "registry.npmjs.org" in err


def test_odd_names_are_pointed_out(tidegate: Command) -> None:
    """JRN-7, B29: what looks like data in disguise is named on standard error, too."""
    path = written(Path("n.jsonl"), line(host=f"{'a1' * 25}.x.test"))
    _status, out, err = tidegate("policy", "learn", path)
    assert "REVIEW" in out
    assert f"look at {'a1' * 25}.x.test:443 before you allow it: a label of 50 characters" in err


def test_groups_need_the_list_of_suffixes(tidegate: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """JRN-7: --group makes wildcards with the machine's list, and without one it says what is missing."""
    listed = tmp_path / "list"
    listed.write_text("test\n")
    path = written(Path("n.jsonl"), *(line(host=f"{name}.cdn.test") for name in "abc"))
    monkeypatch.setattr(suffix_list, "PLACES", (str(listed),))
    assert '- "*.cdn.test:443"' in tidegate("policy", "learn", "--group", path)[1]
    monkeypatch.setattr(suffix_list, "PLACES", ())
    status, out, err = tidegate("policy", "learn", "--group", path)
    assert (status, out) == (1, "")
    assert "apt install publicsuffix" in err


def test_presets_and_methods_come_through(tidegate: Command) -> None:
    """JRN-7, INS-7: the options reach the policy."""
    path = written(Path("n.jsonl"), line(host="pypi.org"), line(host="i.test", how=How.INSPECTED, method="GET"))
    out = tidegate("policy", "learn", "--presets", path)[1]
    assert '- "@pypi"' in out
    assert '- {host: "i.test:443", methods: [GET]}' in out
    assert "c.test:443" in tidegate("policy", "learn", "--include-refused", _record())[1]
