"""`tidegate relay-image`, where no engine is, and with a file; with engines in tests/holds/test_relays.py."""

from __future__ import annotations

import tarfile
from typing import TYPE_CHECKING

import pytest

from tidegate.cli.main import main
from tidegate.holds.container.relay_image import default_image

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("words", [["build"], ["show"]])
def test_without_an_engine_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, words: list[str]
) -> None:
    """HLD-7, HLD-16: exit 78 and one line with what to do."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["relay-image", *words]) == 78
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "apt install podman" in err


def test_an_engine_by_name_that_is_not_here_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """HLD-7: and no other engine is taken in its place."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["relay-image", "show", "--engine", "docker"]) == 78
    assert "docker is not installed" in capsys.readouterr().err


def test_the_image_can_be_taken_elsewhere(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """HLD-4: a tar file with the program, and the command that imports it where the engine is."""
    file = tmp_path / "relay.tar"
    assert main(["relay-image", "build", "--output", str(file)]) == 0
    with tarfile.open(file) as tar:
        assert "relay/__main__.py" in tar.getnames()
    out = capsys.readouterr().out
    assert "docker import" in out
    assert default_image() in out


def test_a_place_that_cannot_be_written_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """HLD-16."""
    assert main(["relay-image", "build", "--output", str(tmp_path / "no" / "relay.tar")]) == 78
    assert "cannot be written" in capsys.readouterr().err
