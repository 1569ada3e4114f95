"""tidegate policy explain."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tidegate.runtime.secret_store import Stored, save

if TYPE_CHECKING:
    from conftest import Command

POLICY = """\
network:
  install:
    allow: [pypi.org]
  runtime:
    allow: ["*.a.test", b.test:443, "**.b.test", host.test, host.test:8443, localhost:5432]
    ask: [ask.test]
    deny: [bad.a.test]
"""
KEYS = {"verdict", "rule", "name", "source", "phase", "host", "port", "reason", "address_class", "also_matched"}


@pytest.fixture
def explained(tidegate: Command) -> Any:
    """Return a function that explains as JSON under POLICY."""
    Path("p.yaml").write_text(POLICY, encoding="utf-8")

    def explain(*argv: str) -> dict[str, Any]:
        status, out, _ = tidegate("policy", "explain", "--policy", "p.yaml", "--json", *argv)
        assert status == 0
        found: dict[str, Any] = json.loads(out)
        return found

    return explain


@pytest.mark.parametrize(
    ("argv", "verdict", "rule", "reason"),
    [
        (["x.a.test"], "allow", "*.a.test", "allowed"),
        (["X.A.TEST.:443"], "allow", "*.a.test", "allowed"),
        (["a.test"], "deny", None, "no-rule"),
        (["x.y.a.test"], "deny", None, "no-rule"),
        (["bad.a.test"], "deny", "bad.a.test", "deny-rule"),
        (["b.test"], "allow", "b.test:443", "allowed"),
        (["b.test:80"], "deny", None, "port-not-allowed"),
        (["ask.test"], "ask", "ask.test", "waiting"),
        (["pypi.org"], "deny", None, "no-rule"),
        (["--phase", "install", "pypi.org"], "allow", "pypi.org", "allowed"),
        (["--allow", "new.test:443", "new.test"], "allow", "new.test:443", "allowed"),
        (["--deny", "b.test", "b.test"], "deny", "b.test", "deny-rule"),
        (["--ask-for", "b.test:443", "b.test"], "ask", "b.test:443", "waiting"),
        (["--profile", "audit", "any.test"], "allow", None, "allowed-by-default"),
        (["1.2.3.4"], "deny", None, "literal-not-named"),
        (["169.254.169.254:80"], "deny", None, "never-address"),
        (["metadata.google.internal"], "deny", None, "never-allowed"),
        (["[::1]:80"], "deny", None, "literal-not-named"),
        (["localhost:5432"], "allow", "localhost:5432", "allowed"),
    ],
)
def test_the_decision_is_explained(
    explained: Any, argv: list[str], verdict: str, rule: str | None, reason: str
) -> None:
    """POL-14, POL-5, B11, B13: verdict, governing rule and reason, with the port 443 when absent."""
    found = explained(*argv)
    assert set(found) >= KEYS
    assert (found["verdict"], found["rule"], found["reason"]) == (verdict, rule, reason)


def test_the_fields_that_place_a_decision(explained: Any) -> None:
    """POL-6: name, source, phase, host and port come from the one decision."""
    found = explained("x.a.test")
    assert [found[key] for key in ("name", "source", "phase", "host", "port")] == [
        "policy", "p.yaml:5:13", "runtime", "x.a.test", 443,
    ]  # fmt: skip
    assert (found["address"], found["address_class"]) == (None, None)


def test_rules_that_matched_too_say_why_they_lost(explained: Any) -> None:
    """POL-14: each rule that also matched is there with the reason it does not govern."""
    lost = explained("host.test:8443")["also_matched"]
    assert [(rule["verdict"], rule["rule"], rule["source"]) for rule in lost] == [("allow", "host.test", "p.yaml:5:50")]
    assert lost[0]["why"]
    assert [rule["rule"] for rule in explained("bad.a.test")["also_matched"]] == ["*.a.test"]


@pytest.mark.parametrize(
    ("target", "address", "verdict", "reason", "address_class"),
    [
        ("host.test:8443", "1.2.3.4", "allow", "allowed", "public"),
        ("host.test:8443", "10.0.0.1", "allow", "allowed", "private"),
        ("x.a.test", "10.0.0.1", "deny", "private-address", "private"),
        ("x.a.test", "[fd00::1]", "deny", "private-address", "private"),
        ("host.test:443", "127.0.0.1", "deny", "own-address", "own"),
        ("host.test:8443", "127.0.0.1", "allow", "allowed", "own"),
        ("host.test:8443", "::ffff:169.254.169.254", "deny", "never-address", "never"),
        ("b.test", "2600:beef::1", "allow", "allowed", "public"),
    ],
)
def test_an_address_is_judged_where_it_is_given(
    explained: Any, target: str, address: str, verdict: str, reason: str, address_class: str
) -> None:
    """POL-14, ADR-2: --address says where the name leads; nothing is looked up for it."""
    found = explained("--address", address, target)
    assert (found["verdict"], found["reason"], found["address_class"]) == (verdict, reason, address_class)


def test_one_bad_address_of_several_refuses_the_name(explained: Any) -> None:
    """ADR-4: all addresses count."""
    assert explained("--address", "1.2.3.4", "--address", "10.0.0.1", "x.a.test")["verdict"] == "deny"


@pytest.mark.parametrize(
    "target",
    [
        *("", "a b", "a..b", "a/b", "u@a.test", "https://a.test", "bücher.example", "a\x1b[2J"),
        *("a.test:0", "a.test:+443", "a.test:99999", "127.1", "0x7f.1", "[::1", "::1"),
    ],
)
def test_a_malformed_target_is_exit_2_and_one_safe_line(tidegate: Command, target: str) -> None:
    """POL-3, POL-14: nothing of it is guessed, and nothing raw of it reaches the screen."""
    status, out, err = tidegate("policy", "explain", "--", target)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert "\x1b" not in err


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--address", "1.2.3", "a.test"], "not an address: '1.2.3'"),
        (["--address", "a.test", "a.test"], "not an address: 'a.test'"),
        (["--address", "1.1.1.1", "1.2.3.4"], "1.2.3.4 is an address itself"),
        (["--profile", "open", "a.test"], "no such profile"),
        (["--allow", "10.0.0.0/8", "a.test"], "CIDR"),
        (["--policy", "missing.yaml", "a.test"], "missing.yaml"),
    ],
)
def test_bad_options_are_exit_2(tidegate: Command, argv: list[str], said: str) -> None:
    """HLD-16: one line that says which option is wrong."""
    status, out, err = tidegate("policy", "explain", *argv)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert said in err


def test_the_line_that_would_allow_it_allows_it(tidegate: Command, explained: Any) -> None:
    """POL-14: what is printed as fix, taken at its word, turns the verdict into allow: as an option and in a policy."""
    for target, address in (
        ("a.test", "1.2.3.4"),
        ("ask.test", "1.2.3.4"),
        ("x.a.test", "10.0.0.1"),
        ("b.test:80", "1.1.1.1"),
    ):
        found = explained("--address", address, target)
        assert found["verdict"] != "allow"
        assert explained(*found["fix"].split(), "--address", address, target)["verdict"] == "allow"
        Path("fix.yaml").write_text(found["policy_line"] + "\n", encoding="utf-8")
        argv = ("policy", "explain", "--policy", "fix.yaml", "--json", "--address", address, target)
        assert json.loads(tidegate(*argv)[1])["verdict"] == "allow"


def test_as_text_it_says_all_of_it(tidegate: Command) -> None:
    """POL-14: verdict, rule, source, what also matched, whether it is inspected, and what would allow it."""
    Path("p.yaml").write_text(POLICY, encoding="utf-8")
    _, out, _ = tidegate("policy", "explain", "--policy", "p.yaml", "a.test")
    assert out.splitlines()[0] == "a.test:443 in runtime: deny"
    assert "to allow it: --allow a.test:443\n" in out
    assert 'in a policy: network: {runtime: {allow: ["a.test:443"]}}\n' in out
    _, out, _ = tidegate("policy", "explain", "--policy", "p.yaml", "bad.a.test")
    assert "take the deny rule bad.a.test (p.yaml:7:12) away" in out
    assert "allow *.a.test  (policy, p.yaml:5:13): " in out
    _, out, _ = tidegate("policy", "explain", "169.254.169.254")
    assert "no rule would allow it" in out
    _, out, _ = tidegate("policy", "explain", "github.com")
    assert "nobody is asked" in out
    Path("p.yaml").write_text("profile: balanced\nregistries: read\n", encoding="utf-8")
    asked = ("policy", "explain", "--policy", "p.yaml", "pypi.org")
    _, out, _ = tidegate(*asked)
    assert "inspected  yes: package registries are read-only, which is judged inside TLS\n" in out
    _, out, _ = tidegate(*asked, "--allow", "pypi.org:443")
    assert "inspected  no: a tunnel, its bytes are not read; your rule pypi.org:443 (--allow) names no methods" in out
    assert "and lifts the read-only table of pypi.org\n" in out
    assert "to allow it" not in out


def test_where_localhost_leads_is_known(tidegate: Command) -> None:
    """B28, ADR-4: localhost is this machine without a look-up, so a rule without its port does not admit it."""
    for option, verdict in (("localhost", "deny"), ("localhost:81", "deny"), ("localhost:80", "allow")):
        _, out, _ = tidegate("policy", "explain", "--profile", "closed", "--allow", option, "--json", "localhost:80")
        assert json.loads(out)["verdict"] == verdict


def test_a_harness_is_explained_as_run_would_use_it(tidegate: Command) -> None:
    """POL-12, POL-14: its hosts count with --harness, by its name; a deny wins, and the rest stays asked."""
    Path("mine.yaml").write_text("name: mine\ncommand: m\nnetwork: {requires: ['*.m.test']}\n", encoding="utf-8")
    for argv, verdict, name, source in (
        (["--harness", "claude", "api.anthropic.com"], "allow", "harness:claude", "harness claude"),
        (["--harness", "claude", "api.anthropic.com:80"], "ask", "no-rule", "profile balanced"),
        (["--harness", "codex", "api.anthropic.com"], "ask", "no-rule", "profile balanced"),
        (["api.anthropic.com"], "ask", "no-rule", "profile balanced"),
        (["--harness", "claude", "--phase", "install", "api.anthropic.com"], "ask", "no-rule", "profile balanced"),
        (["--harness", "claude", "--deny", "**.com", "api.anthropic.com"], "deny", "command-line", "--deny"),
        (["--harness", "mine.yaml", "a.m.test"], "allow", "harness:mine", "mine.yaml:3:22"),
        (["--harness", "mine.yaml", "m.test"], "ask", "no-rule", "profile balanced"),
    ):
        status, out, _ = tidegate("policy", "explain", "--json", *argv)
        said = json.loads(out)
        assert (status, said["verdict"], said["name"], said["source"]) == (0, verdict, name, source), argv
    status, out, _ = tidegate("policy", "explain", "--harness", "mine.yaml", "--address", "10.0.0.1", "a.m.test")
    assert (status, out.splitlines()[0]) == (0, "a.m.test:443 in runtime: deny")
    assert tidegate("policy", "explain", "--harness", "nobody", "a.test")[0] == 2


def test_a_secret_of_the_host_is_a_reason_to_read_it(
    explained: Any, tidegate: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """INS-5, POL-14: with --secret as in a run that has it, without it as one that could; not where it is refused."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for name, host in (("TOKEN", "b.test"), ("KEY", "bad.a.test"), ("OTHER", "b.test:8443")):
        save(str(tmp_path / "tidegate"), Stored(name, (place_of(host),), "bearer", "", name, "env", ("X",)))
    found = explained("b.test")
    assert (found["inspected"], "with --secret TOKEN it is read, for that secret" in found["inspected_why"]) == (
        False,
        True,
    )
    found = explained("b.test", "--secret", "TOKEN", "--secret", "OTHER")
    assert (found["inspected"], found["inspected_why"]) == (True, "the secret TOKEN belongs to it, and is put in there")
    assert "secret" not in explained("x.a.test", "--secret", "TOKEN")["inspected_why"]
    assert "secret" not in explained("bad.a.test", "--secret", "KEY")["inspected_why"]
    Path("never.yaml").write_text("inspect: {never: [b.test]}\nnetwork: {runtime: {allow: [b.test]}}\n")
    status, out, _ = tidegate("policy", "explain", "--policy", "never.yaml", "--secret", "TOKEN", "b.test")
    assert (status, "a run with --secret TOKEN does not start" in out) == (0, True)
    status, _, err = tidegate("policy", "explain", "--policy", "p.yaml", "--secret", "NONE", "b.test")
    assert (status, "there is no secret 'NONE'" in err) == (78, True)


def place_of(text: str) -> tuple[str, int]:
    """A host and port."""
    host, _, port = text.partition(":")
    return host, int(port or 443)


def test_a_locked_policy_says_which_line_of_its_own_would_allow_it(tidegate: Command) -> None:
    """POL-8, POL-14: no `--allow` is offered, which would change nothing; the line of the file is, where one helps."""
    lists = "network: {runtime: {allow: ['*.a.test'], deny: [bad.test]}}"
    Path("p.yaml").write_text(f"locked: true\ndefault: deny\nprivate: exact-host\n{lists}\n", encoding="utf-8")

    def explained(*argv: str) -> str:
        status, out, _ = tidegate("policy", "explain", "--policy", "p.yaml", *argv)
        assert status == 0
        return out

    line = '  in the policy itself, which is locked: network: {runtime: {allow: ["new.test:443"]}}\n'
    assert explained("new.test").endswith(line)
    assert "--allow" not in explained("new.test")
    assert '{allow: ["10.0.0.5:80"]}' in explained("10.0.0.5:80")
    assert '{allow: ["x.a.test:443"]}' in explained("x.a.test", "--address", "10.0.0.5")
    for nothing in ("169.254.169.254:80", "metadata.google.internal"):
        assert explained(nothing).endswith("  no rule would allow it\n")
    assert "take the deny rule bad.test" in explained("bad.test")
    assert "locked" not in explained("x.a.test")
