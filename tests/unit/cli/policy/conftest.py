"""The `tidegate` fixture: a command line run in this process, in a folder and with a configuration of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

from tidegate.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path


class Command(Protocol):
    """Runs `tidegate` with these arguments."""

    def __call__(self, *argv: str) -> tuple[int, str, str]:
        """Return exit status, standard output and standard error."""


@pytest.fixture
def tidegate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Return a function that runs a command in an empty folder, without any configuration of the user."""
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def run(*argv: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main(list(argv))
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return status, said.out, said.err

    return run
