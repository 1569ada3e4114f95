"""tidegate.cli.watch: its packages are an extra, and no server is one line."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from tidegate.cli import main
from tidegate.cli.api_client import ApiClient
from tidegate.cli.watch import PACKAGES

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).resolve().parents[3]


def test_the_extra_has_what_is_installed() -> None:
    """One list, in two places."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert extras["watch"] == list(PACKAGES.values())


def test_without_a_server_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """HLD-16: exit 78 and how to start one; the terminal is not touched."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert main.main(["watch"]) == 78
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "tidegate: no server runs here: tidegate serve starts one\n"


def test_without_a_terminal_it_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """HLD-16: in a pipe or in CI it ends with 78 and names what does the same there; it drew into a file for ever."""
    monkeypatch.setattr(ApiClient, "get", lambda *_: {})
    assert main.main(["watch"]) == 78
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "tidegate: tidegate watch needs a terminal for itself: tidegate questions --follow\n"
