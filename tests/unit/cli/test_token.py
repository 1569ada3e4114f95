"""`tidegate token` against a whole server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.unit.server.api.running import Whole
from tidegate.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_token_is_made_used_listed_and_revoked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """SRV-1: the secret stands alone on a line, once; it opens loopback with its role until it is revoked or over."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with Whole(tmp_path) as whole:
        assert main(["token", "list"]) == 0
        assert capsys.readouterr() == ("", "tidegate: there is no token: tidegate token create NAME\n")
        assert main(["token", "create", "laptop", "--owner", "--expires", "8h"]) == 0
        secret = capsys.readouterr().out.strip()
        assert whole.ask("GET", "/api/health", token=secret).json["role"] == "owner"
        assert main(["token", "create", "screen"]) == 0
        viewer = capsys.readouterr().out.strip()
        assert whole.ask("GET", "/api/health", token=viewer).json["role"] == "viewer"
        assert main(["token", "create", "laptop"]) == 1
        assert main(["token", "create", "late", "--expires", "2001-01-01"]) == 2
        capsys.readouterr()
        assert main(["token", "list"]) == 0
        listed = capsys.readouterr().out
        assert secret not in listed
        first, second = listed.splitlines()
        assert "laptop · owner · last used 2" in first
        assert "· ends " in first
        assert "screen · viewer" in second
        assert main(["token", "list", "--json"]) == 0
        number = json.loads(capsys.readouterr().out.splitlines()[0])["id"]
        assert main(["token", "revoke", str(number)]) == 0
        assert whole.ask("GET", "/api/health", token=secret).status == 401
        assert whole.ask("GET", "/api/health", token=viewer).status == 200
        assert main(["token", "revoke", str(number)]) == 1
