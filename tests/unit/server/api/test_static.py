"""The portal's files, from memory."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.unit.server.api.running import Running
from tidegate.server.api.static import MAX_FILE, load

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A portal with files that are served and some that are not."""
    found = tmp_path / "portal"
    (found / "parts").mkdir(parents=True)
    (found / ".git").mkdir()
    (found / "__pycache__").mkdir()
    (found / "index.html").write_text("<!doctype html>")
    (found / "parts" / "live.js").write_text("export const a = 1")
    (found / "notes.md").write_text("not served")
    (found / ".hidden.js").write_text("not served")
    (found / ".git" / "a.js").write_text("not served")
    (found / "__pycache__" / "a.js").write_text("not served")
    (found / "large.js").write_bytes(b"x" * (MAX_FILE + 1))
    (tmp_path / "secret.js").write_text("not served")
    os.symlink(tmp_path / "secret.js", found / "link.js")
    return found


def test_only_what_is_meant_for_browsers_is_loaded(folder: Path) -> None:
    """SRV-3: known types only; nothing hidden, no link out of the folder, nothing that is too large."""
    files = load(str(folder))
    assert sorted(files) == ["/", "/parts/live.js"]
    assert files["/"].media_type == "text/html; charset=utf-8"
    assert files["/parts/live.js"].media_type == "text/javascript; charset=utf-8"
    assert load(str(folder / "none")) == {}


def test_files_are_served_and_known_ones_are_not_sent_again(folder: Path, tmp_path: Path) -> None:
    """SRV-3: a browser that has the file is told so; other paths, folders and ways up are not there."""
    with Running(tmp_path, files=load(str(folder))) as running:
        first = running.ask("GET", "/parts/live.js")
        assert (first.status, first.body) == (200, b"export const a = 1")
        assert running.ask("GET", "/parts/live.js", If_None_Match=first.headers["etag"]).status == 304
        assert running.ask("GET", "/parts/live.js", If_None_Match='"other"').status == 200
        for path in (
            "/parts",
            "/parts/",
            "/index.html",
            "/link.js",
            "/../secret.js",
            "/parts/../../secret.js",
            "/notes.md",
        ):
            assert running.ask("GET", path).status == 404
