"""`tidegate settings` against a whole server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.server.api.running import Whole
from tidegate.cli.main import main


def test_settings_are_shown_and_set(whole: Whole, capsys: pytest.CaptureFixture[str]) -> None:
    """POL-13, ASK-2: nothing is reached unless they say so; what is set is what a task that says nothing gets."""
    assert main(["settings"]) == 0
    rest = "notify: on\nwebhook: none\nrelay-image: none\n"
    assert capsys.readouterr().out == f"network-default: none\ndefault-hosts: none\nwait: 15:00\n{rest}"
    assert main(["settings", "set", "wait", "2h"]) == 0
    assert main(["settings", "set", "default-hosts", "a.test:443", "*.b.test"]) == 0
    assert main(["settings", "set", "network-default", "allowlist"]) == 0
    last = f"network-default: allowlist\ndefault-hosts: a.test:443 *.b.test\nwait: 2:00:00\n{rest}"
    assert capsys.readouterr().out.endswith(last)
    assert main(["settings", "--json"]) == 0
    kept = {"network_default": "allowlist", "default_hosts": ["a.test:443", "*.b.test"], "wait_seconds": 7200}
    said = json.loads(capsys.readouterr().out)
    assert said == kept | {"notify": True, "webhook": "", "relay_image": "", "webhook_key_set": False, "fixed": []}
    assert whole.task()["wait_seconds"] == 7200
    assert main(["settings", "set", "default-hosts"]) == 0
    assert "default-hosts: none" in capsys.readouterr().out
    assert main(["settings", "set", "relay-image", "example.test/relay:1"]) == 0
    assert "relay-image: example.test/relay:1\n" in capsys.readouterr().out
    assert main(["settings", "set", "relay-image", "none"]) == 0
    assert "relay-image: none\n" in capsys.readouterr().out


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
        (["notify", "maybe"], 2, "on or off"),
        (["webhook", "http://chat.test/x"], 2, "http is read by others"),
        (["webhook", "https://chat.test/x"], 2, "needs a key"),
        (["webhook", "https://chat.test/x", "--key-file", "/none"], 78, "cannot be read"),
        (["wait", "2h", "--key-file", "/none"], 2, "is the webhook's"),
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


def test_a_webhook_is_set_from_a_file_and_its_key_is_never_shown(
    whole: Whole, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """ASK-5, INS-5: in force without a restart; nobody is told of key and path; `none` takes both away."""
    key = tmp_path / "key"
    key.write_text("0123456789abcdef-KEY\n")
    key.chmod(0o600)
    url = "http://127.0.0.1:9/PATH"
    assert main(["settings", "set", "webhook", url, "--key-file", str(key)]) == 0
    assert main(["settings", "--json"]) == 0
    out = capsys.readouterr().out
    assert "webhook: http://127.0.0.1:9/..." in out
    assert json.loads(out.splitlines()[-1])["webhook_key_set"] is True
    log = (tmp_path / "state" / "tidegate" / "log" / "actions.jsonl").read_text()
    assert "settings.changed" in log
    for text in (out, log):
        assert "KEY" not in text
        assert "PATH" not in text
    ways = whole.server.ways
    assert ways is not None
    assert ways.webhook is not None
    assert ways.webhook._target.key == b"0123456789abcdef-KEY"
    assert main(["settings", "set", "webhook", "none"]) == 0
    assert ways.webhook is None
    assert not list((tmp_path / "state" / "tidegate" / "keys").glob("webhook*"))
    assert main(["settings", "set", "notify", "off"]) == 0
    assert whole.server.store.settings().notify is False
