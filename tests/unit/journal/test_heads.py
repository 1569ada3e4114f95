"""tidegate.journal.heads."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.journal.chain import Head
from tidegate.journal.heads import HEAD_NAME, KEY_NAME, HeadFile, make_key, newest_head, read_key
from tidegate.model.errors import StartError


def test_a_key_is_made_once_and_private(tmp_path: Path) -> None:
    """JRN-2: the key is random, its owner's only, and stays."""
    key = make_key(str(tmp_path))
    assert len(key) == 32
    assert make_key(str(tmp_path)) == key == read_key(str(tmp_path))
    assert (tmp_path / KEY_NAME).stat().st_mode & 0o777 == 0o600
    other = tmp_path / "other"
    other.mkdir()
    assert make_key(str(other)) != key


@pytest.mark.parametrize("kind", ["missing", "short", "long", "symlink", "folder"])
def test_a_key_that_is_none_is_said(tmp_path: Path, kind: str) -> None:
    """HLD-7: no new key under an old log, and no key through a link; one line names the file and the cure."""
    path = tmp_path / KEY_NAME
    if kind in ("short", "long"):
        path.write_bytes(bytes(31 if kind == "short" else 33))
    elif kind == "symlink":
        (tmp_path / "real").write_bytes(bytes(32))
        path.symlink_to(tmp_path / "real")
    elif kind == "folder":
        path.mkdir()
    with pytest.raises(StartError, match=KEY_NAME):
        read_key(str(tmp_path))


def test_the_newest_of_two_slots_counts(tmp_path: Path) -> None:
    """A head that was torn by a crash leaves the one before."""
    key = make_key(str(tmp_path))
    assert newest_head(str(tmp_path), key) is None
    heads = HeadFile(str(tmp_path), key)
    for seq in (1, 2, 3):
        heads.write(Head(seq=seq, hash=f"{seq:064x}"))
    heads.close()
    assert newest_head(str(tmp_path), key) == Head(seq=3, hash=f"{3:064x}")
    path = tmp_path / HEAD_NAME
    torn = bytearray(path.read_bytes())
    torn[512 + 20 : 600] = bytes(600 - 532)  # odd numbers are in the second slot
    path.write_bytes(torn)
    assert newest_head(str(tmp_path), key) == Head(seq=2, hash=f"{2:064x}")


def test_a_head_of_another_key_is_none(tmp_path: Path) -> None:
    """JRN-2: a head that anyone else wrote says nothing."""
    heads = HeadFile(str(tmp_path), bytes(32))
    heads.write(Head(seq=5))
    heads.close()
    assert newest_head(str(tmp_path), make_key(str(tmp_path))) is None
    assert newest_head(str(tmp_path), bytes(32)) == Head(seq=5)
