"""tidegate.journal.sinks.keeping: what is kept, and what is taken for nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tidegate.journal.sinks import keeping
from tidegate.journal.sinks.keeping import Keeper, Kept
from tidegate.runtime.state import write_private

if TYPE_CHECKING:
    from pathlib import Path


def test_it_comes_back(tmp_path: Path) -> None:
    """JRN-6: all of it, in a file of this user's alone; removed, it is the beginning again."""
    keeper = Keeper(str(tmp_path), "one", write_private)
    assert keeper.load() == (Kept(), "")
    kept = Kept(seq=7, hash="ab", sent=5, aside=1, lost=2, gaps=((3, 4),), marks=((5, "x"),), error="no")
    keeper.save(kept)
    assert keeper.load() == (kept, "")
    assert (tmp_path / "one.position").stat().st_mode & 0o777 == 0o600
    keeper.remove()
    assert keeper.load() == (Kept(), "")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"seq":-1,"hash":"","sent":0,"aside":0,"lost":0,"gaps":[],"marks":[],"error":""}']
)
def test_a_damaged_position_is_the_beginning_and_said(tmp_path: Path, text: str) -> None:
    """JRN-6: it may repeat, and loses nothing."""
    (tmp_path / "one.position").write_text(text)
    kept, said = Keeper(str(tmp_path), "one", write_private).load()
    assert kept == Kept()
    assert "begins with the first line" in said


def test_what_is_set_aside_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JRN-6: lines of JSON, no more than the bound, and through no link."""
    monkeypatch.setattr(keeping, "ASIDE_BYTES", 100)
    keeper = Keeper(str(tmp_path), "one", write_private)
    for number in range(50):
        keeper.set_aside({"seq": number, "why": "x\n"})
    lines = (tmp_path / "one.aside").read_text().splitlines()
    assert 0 < len(lines) < 10
    assert json.loads(lines[0]) == {"seq": 0, "why": "x\n"}
    (tmp_path / "two.aside").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        Keeper(str(tmp_path), "two", write_private).set_aside({})
