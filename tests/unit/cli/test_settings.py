"""`tidegate settings` against a whole server."""

from __future__ import annotations

import json

import pytest

from tests.unit.server.api.running import Whole
from tidegate.cli.main import main


def test_settings_are_shown_and_set(whole: Whole, capsys: pytest.CaptureFixture[str]) -> None:
    """POL-13, ASK-2: nothing is reached unless they say so; what is set is what a task that says nothing gets."""
    assert main(["settings"]) == 0
    assert capsys.readouterr().out == "network-default: none\ndefault-hosts: none\nwait: 15:00\n"
    assert main(["settings", "set", "wait", "2h"]) == 0
    assert main(["settings", "set", "default-hosts", "a.test:443", "*.b.test"]) == 0
    assert main(["settings", "set", "network-default", "allowlist"]) == 0
    last = "network-default: allowlist\ndefault-hosts: a.test:443 *.b.test\nwait: 2:00:00\n"
    assert capsys.readouterr().out.endswith(last)
    assert main(["settings", "--json"]) == 0
    kept = {"network_default": "allowlist", "default_hosts": ["a.test:443", "*.b.test"], "wait_seconds": 7200}
    assert json.loads(capsys.readouterr().out) == kept
    assert whole.task()["wait_seconds"] == 7200
    assert main(["settings", "set", "default-hosts"]) == 0
    assert "default-hosts: none" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (["wait", "59s"], 2, "1m to 8h"),
        (["wait", "9h"], 2, "1m to 8h"),
        (["wait"], 2, "one value"),
        (["network-default", "none", "none"], 2, "one value"),
        (["network-default", "all"], 2, "network_default"),
        (["default-hosts", "10.0.0.0/8"], 2, "10.0.0.0/8"),
        (["colour", "red"], 2, "colour"),
    ],
)
def test_what_cannot_be_set_is_one_line(
    whole: Whole, capsys: pytest.CaptureFixture[str], words: list[str], status: int, says: str
) -> None:
    """HLD-16, POL-13: each value is checked, and nothing has changed."""
    before = whole.get("/api/settings")
    assert main(["settings", "set", *words]) == status
    err = capsys.readouterr().err
    assert says in err
    assert err.count("\n") == 1
    assert whole.get("/api/settings") == before
