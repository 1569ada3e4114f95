"""tidegate.cli.policy.written_file."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from tidegate.cli.policy.written_file import put
from tidegate.model.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


def test_a_new_file_is_written_whole(tmp_path: Path) -> None:
    """JRN-7: the file is there with all of its bytes, and nothing else is left beside it."""
    put(str(tmp_path / "p.yaml"), b"default: deny\n", force=False)
    assert (tmp_path / "p.yaml").read_bytes() == b"default: deny\n"
    assert os.listdir(tmp_path) == ["p.yaml"]


def test_what_is_there_stays_unless_forced(tmp_path: Path) -> None:
    """JRN-7: --write refuses a file that is there; --force puts another in its place, with the rights it had."""
    path = tmp_path / "p.yaml"
    path.write_text("mine")
    path.chmod(0o640)
    with pytest.raises(UsageError, match="is there already: --force writes over it"):
        put(str(path), b"new", force=False)
    assert path.read_text() == "mine"
    put(str(path), b"new", force=True)
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["p.yaml"]


@pytest.mark.parametrize("force", [False, True])
def test_a_link_is_not_followed(tmp_path: Path, *, force: bool) -> None:
    """JRN-7: what a link leads to is not written, nor is a folder or a device."""
    target = tmp_path / "target"
    target.write_text("theirs")
    (tmp_path / "link").symlink_to(target)
    (tmp_path / "dangling").symlink_to(tmp_path / "none")
    for name in ("link", "dangling", "."):
        with pytest.raises(UsageError, match="is there and is no plain file"):
            put(str(tmp_path / name), b"new", force=force)
    assert target.read_text() == "theirs"
    assert not (tmp_path / "none").exists()


def test_where_nothing_can_be_written_it_is_said(tmp_path: Path) -> None:
    """JRN-7: a folder that is not there is one clear line."""
    with pytest.raises(UsageError, match="cannot be written: No such file or directory"):
        put(str(tmp_path / "none" / "p.yaml"), b"", force=False)
