"""Which folder it is, and whether it can remember."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tidegate.model.errors import StartError
from tidegate.model.question import FolderKey
from tidegate.state.folders import folder_key, why_not_remembered

if TYPE_CHECKING:
    from pathlib import Path


def test_a_folder_is_its_real_path_device_and_inode(tmp_path: Path) -> None:
    """ASK-8: by whatever way it is reached it is the same; another one in its place, or below it, is not."""
    real, link = tmp_path / "w", tmp_path / "link"
    real.mkdir()
    (real / "sub").mkdir()
    link.symlink_to(real)
    key = folder_key(str(real))
    found = os.stat(real)
    assert key == FolderKey(str(real), found.st_dev, found.st_ino)
    assert folder_key(str(link)) == key
    assert folder_key(f"{real}/sub/..") == key
    assert folder_key(str(real / "sub")) != key
    real.rename(tmp_path / "away")
    real.mkdir()
    assert folder_key(str(real)) != key


@pytest.mark.parametrize("what", ["missing", "file", "dangling"])
def test_what_is_no_folder_is_refused(tmp_path: Path, what: str) -> None:
    """A clear line at launch."""
    (tmp_path / "file").write_text("")
    (tmp_path / "dangling").symlink_to("nowhere")
    with pytest.raises(StartError):
        folder_key(str(tmp_path / what))


def test_root_and_home_do_not_remember(tmp_path: Path) -> None:
    """ASK-8: nor the home folder by another name; a folder in it does."""
    home, other = tmp_path / "home", tmp_path / "other"
    (home / "work").mkdir(parents=True)
    other.symlink_to(home)
    assert "root" in why_not_remembered(folder_key("/"), str(home))
    assert "home" in why_not_remembered(folder_key(str(home)), str(home))
    assert "home" in why_not_remembered(folder_key(str(other)), str(home))
    assert "home" in why_not_remembered(folder_key(str(home)), str(other))
    assert why_not_remembered(folder_key(str(home / "work")), str(home)) == ""
    assert why_not_remembered(folder_key(str(tmp_path)), str(home)) == ""
    assert why_not_remembered(folder_key(str(tmp_path)), str(tmp_path / "gone")) == ""
