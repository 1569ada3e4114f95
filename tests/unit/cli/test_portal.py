"""`tidegate portal`: a browser gets a one-time code, and never by an argument."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from tests.unit.server.api.running import Whole
from tidegate.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Whole]:
    """A whole server, and the environment that leads to it; no desktop."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    with Whole(tmp_path) as found:
        yield found


def _session(whole: Whole, url: str) -> int:
    code = url.strip().partition("#code=")[2]
    body = b'{"code": "%s"}' % code.encode()
    return whole.ask("POST", "/api/session", body, Content_Type="application/json").status


@pytest.mark.parametrize("words", [["portal"], ["portal", "--print"]])
def test_without_a_desktop_the_url_is_printed(
    whole: Whole, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """SRV-1: the URL has the code in its fragment, works once, and there is no token in it."""
    assert main(words) == 0
    url = capsys.readouterr().out
    assert url.startswith(f"http://127.0.0.1:{whole.port}/#code=")
    assert "tg_" not in url
    assert (_session(whole, url), _session(whole, url)) == (201, 401)


def test_the_browser_is_told_by_a_private_file(
    whole: Whole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """SRV-1: the opener's arguments hold no code; the file it is given does, and nobody else can read it."""
    opener = tmp_path / "bin" / "xdg-open"
    opener.parent.mkdir()
    opener.write_text(f'#!/bin/sh\nprintf %s "$*" > {tmp_path}/arguments\ncp "$1" {tmp_path}/page\n')
    opener.chmod(0o755)
    monkeypatch.setenv("PATH", f"{opener.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("DISPLAY", ":9")
    assert main(["portal", "--viewer"]) == 0
    assert capsys.readouterr().out == ""
    given = (tmp_path / "arguments").read_text()
    assert "code" not in given
    found = os.stat(given.removeprefix("file://"))
    assert stat.S_IMODE(found.st_mode) == 0o600
    page = (tmp_path / "page").read_text()
    url = page.partition("url=")[2].partition('"')[0]
    assert url.startswith(f"http://127.0.0.1:{whole.port}/#code=")
    assert _session(whole, url) == 201


def test_a_phone_needs_a_door(whole: Whole, capsys: pytest.CaptureFixture[str]) -> None:
    """SRV-2: without --listen no phone is paired, and the line says what to start."""
    assert main(["portal", "--phone"]) == 1
    assert "tidegate serve --listen" in capsys.readouterr().err
    assert whole.port


def test_no_server_is_exit_78(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HLD-16: there is nothing to open."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert main(["portal"]) == 78
