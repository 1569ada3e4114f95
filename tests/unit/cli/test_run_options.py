"""tidegate.cli.run_options."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.cli.run_options import USAGE, parse_run
from tidegate.model.errors import UsageError


def test_options_end_where_the_command_begins() -> None:
    """What stands behind the command is the command's, options of the same name included."""
    options = parse_run(["--allow", "a.test", "--quiet", "curl", "--allow", "-q", "--", "x"])
    assert options.allow == ("a.test",)
    assert options.quiet
    assert options.command == ("curl", "--allow", "-q", "--", "x")
    assert parse_run(["--", "--version"]).command == ("--version",)


def test_values_come_behind_a_space_or_an_equals_sign() -> None:
    """Both spellings that people write mean the same; the value may hold an equals sign."""
    assert parse_run(["--log=a=b", "true"]).log == "a=b"
    assert parse_run(["--log", "a=b", "true"]).log == "a=b"


def test_repeated_rules_keep_their_order() -> None:
    """Every --allow counts."""
    assert parse_run(["--allow", "a", "--allow=b", "--deny", "c", "--ask-for", "d", "true"]).allow == ("a", "b")


@pytest.mark.parametrize(
    ("argv", "what", "fix"),
    [
        (["--alow", "a", "true"], "'--alow'", "--allow"),
        (["--zzzz", "true"], "'--zzzz'", "--help"),
        (["--allow"], "needs a value", "--allow VALUE"),
        (["--allow", "--", "true"], "needs a value", "--allow VALUE"),
        (["--allow=", "true"], "empty value", "--allow VALUE"),
        (["--quiet=yes", "true"], "takes no value", "--quiet alone"),
        ([], "no command", "COMMAND"),
        (["--quiet"], "no command", "COMMAND"),
        (["--", ""], "empty", "COMMAND"),
        (["--policy", "a", "--policy", "b", "true"], "twice", "once"),
        (["--phase", "build", "true"], "'build'", "install or runtime"),
        (["--hold", "vm", "true"], "'vm'", "netns"),
        (["--no-network", "--open-network", "true"], "more than one hold", "one of"),
        (["--hold", "netns", "--no-network", "true"], "more than one hold", "one of"),
        (["--open-network", "--allow", "a", "true"], "no meaning", "leave --allow out"),
        (["--hold", "offline", "--harness", "claude", "claude"], "no meaning", "leave --harness out"),
        (["--harness", "claude", "--harness", "codex", "claude"], "twice", "once"),
        (["--trust-folder", "--no-folder-policy", "true"], "exclude", "one of them"),
        (["--share", "/no/such/path", "true"], "no such path", ":ro"),
        (["--publish", "80", "true"], "no right to listen on port 80", "8080"),
        (["--publish", "0.0.0.0:8080:8080", "true"], "not this machine's loopback", "reverse proxy"),
        (["--publish", "8080", "--publish", "[::1]:8080:3000", "true"], "port 8080", "once"),
        (["--open-network", "--publish", "8080", "true"], "--hold open", "connect to them as they are"),
        (["--no-network", "--publish", "8080", "true"], "--hold offline", "leave --no-network out"),
        (["--publish", "8080"] * 17 + ["true"], "more than 16", "what is needed"),
        (["--ask", "--wait", "true"], "--ask and --wait exclude", "others can answer too"),
        (["--ask", "--no-network", "true"], "--ask has no meaning", "leave --ask out"),
        (["--wait", "--no-server", "true"], "--no-server leaves aside", "give one"),
        (["--wait", "--no-network", "true"], "no meaning without a gate", "leave --wait out"),
    ],
)
def test_each_mistake_is_one_line_that_says_what_to_write(argv: list[str], what: str, fix: str) -> None:
    """HLD-16: exit 2, what is wrong and what to write instead; nothing is guessed."""
    with pytest.raises(UsageError, match=what) as raised:
        parse_run(argv)
    assert fix in raised.value.fix
    assert raised.value.exit_status == 2
    assert "\n" not in str(raised.value)


def test_a_share_is_its_real_path(tmp_path: Path) -> None:
    """HLD-14: what is shown is the place itself, not a link that may be turned later."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    shares = parse_run(["--share", f"{tmp_path}/link:ro", "--share", str(tmp_path), "true"]).shares
    assert [(share.path, share.readonly) for share in shares] == [
        (str(tmp_path / "real"), True),
        (str(tmp_path), False),
    ]


def test_the_holds_without_a_gate_are_chosen_by_name() -> None:
    """HLD-5, HLD-7: weaker or none is a choice somebody wrote, never a fall-back."""
    assert parse_run(["true"]).hold == "netns"
    assert parse_run(["--no-network", "true"]).hold == "offline"
    assert parse_run(["--open-network", "true"]).hold == "open"


def test_help_names_every_option() -> None:
    """The help cannot forget an option."""
    from tidegate.cli import run_options

    assert parse_run(["--help"]).help
    for name in (*run_options._VALUED, *run_options._FLAGS):
        assert name in USAGE


@given(st.lists(st.text(max_size=12), max_size=6))
def test_any_words_are_options_or_a_usage_error(argv: list[str]) -> None:
    """No command line ends in another exception."""
    try:
        options = parse_run(argv)
    except UsageError:
        return
    assert options.command or options.help


def test_capture_is_chosen_by_name() -> None:
    """HLD-6, HLD-7: on, ports or off; a hold without a gate captures nothing, and asking for it there is an error."""
    for mode in ("on", "ports", "off"):
        assert parse_run(["--capture", mode, "true"]).capture == mode
    with pytest.raises(UsageError, match="no capture 'yes'"):
        parse_run(["--capture", "yes", "true"])
    assert parse_run(["--no-network", "true"]).capture == "off"
    with pytest.raises(UsageError, match="--capture has no meaning"):
        parse_run(["--no-network", "--capture", "on", "true"])


def test_ports_are_published_in_their_order() -> None:
    """HLD-10: each --publish counts; the same port on the other loopback is another one."""
    options = parse_run(["--publish", "8080", "--publish=127.0.0.1:81:3000", "--publish", "[::1]:81:3001", "true"])
    assert [one.text for one in options.publish] == ["8080:8080", "127.0.0.1:81:3000", "[::1]:81:3001"]
    assert parse_run(["true"]).publish == ()


@pytest.mark.parametrize(
    ("argv", "asked", "seconds"),
    [
        (["--wait", "true"], "wait", None),
        (["--wait-for", "2h", "true"], "wait", 7200),
        (["--wait", "--wait-for=90s", "true"], "wait", 90),
        (["--ask", "--wait-for", "1m", "true"], "ask", 60),
        (["--ask", "--no-server", "--wait-for", "1m", "true"], "ask", 60),
        (["true", "--wait-for", "1m"], "no", None),
    ],
)
def test_a_task_has_a_wait_of_its_own(argv: list[str], asked: str, seconds: int | None) -> None:
    """ASK-2: --wait-for waits as --wait does, and for that long."""
    options = parse_run(argv)
    assert (options.asked, options.wait_seconds) == (asked, seconds)


@pytest.mark.parametrize(
    ("argv", "what"),
    [
        (["--wait-for", "59s", "true"], "cannot wait"),
        (["--wait-for", "1m", "--no-server", "true"], "--no-server leaves aside"),
        (["--wait-for", "1m", "--no-network", "true"], "no meaning without a gate"),
    ],
)
def test_a_wait_that_cannot_be_is_refused(argv: list[str], what: str) -> None:
    """ASK-2: from 1 minute to 8 hours, and only where somebody is asked."""
    with pytest.raises(UsageError, match=what):
        parse_run(argv)


def test_secrets_are_for_runs_with_a_gate() -> None:
    """INS-5: each once; not where there is no gate that could hold the value; for a created task when it is made."""
    assert parse_run(["--secret", "A", "--secret=B", "--secret", "A", "true"]).secrets == ("A", "B")
    assert parse_run(["--secret", "A", "--ask", "true"]).secrets == ("A",)
    assert parse_run(["--secret", "A", "--wait", "true"]).secrets == ("A",)
    with pytest.raises(UsageError, match="--secret has no meaning without a gate"):
        parse_run(["--secret", "A", "--no-network", "true"])
    with pytest.raises(UsageError, match="a task's secrets are named when it is created"):
        parse_run(["--secret", "A", "--", "true"], only=frozenset({"--quiet"}))
    assert parse_run(["--quiet", "--", "true", "--secret"], only=frozenset({"--quiet"})).command == ("true", "--secret")
