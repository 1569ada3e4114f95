"""tidegate.cli.log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.journal.actions_log import Written
from tests.unit.journal.not_files import put, word
from tidegate.cli.group import run_click
from tidegate.model.errors import TidegateError


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Written:
    """A log of three lines where the command looks for it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "tidegate").mkdir()
    log = Written(tmp_path / "tidegate")
    log.write(3)
    return log


def test_a_whole_log_verifies(written: Written, capsys: pytest.CaptureFixture[str]) -> None:
    """JRN-2: exit 0, and how far the sealed head reaches."""
    assert run_click(["log", "verify"]) == 0
    assert "3 lines, each sealed and in its place, to the sealed head (line 3)" in capsys.readouterr().out
    assert run_click(["log", "verify", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["ok"], answer["lines"], answer["findings"]) == (True, 3, [])
    assert written.live.exists()


def test_what_is_wrong_is_named_with_file_and_line(written: Written, capsys: pytest.CaptureFixture[str]) -> None:
    """JRN-2: exit 1, FILE:LINE: and what it is."""
    written.live.write_bytes(b"".join(line.replace(b"h1.test", b"h9.test") for line in written.lines()))
    assert run_click(["log", "verify"]) == 1
    assert f"{written.live}:2: changed or forged" in capsys.readouterr().out
    assert run_click(["log", "verify", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["findings"][0]["line"] == 2


def test_no_log_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty state folder is not a verified log."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with pytest.raises(TidegateError, match="no action log yet"):
        run_click(["log", "verify"])


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_what_is_no_log_is_refused_with_its_path(
    written: Written, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """JRN-2: exit 1 and one line; nothing is waited for."""
    put(kind, written.live)
    assert run_click(["log", "verify"]) == 1
    assert capsys.readouterr().out.splitlines() == [f"{written.live}: {word(kind)}", "1 thing wrong in 0 lines"]
