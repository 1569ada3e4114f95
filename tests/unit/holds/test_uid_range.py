"""The range of the hold `uid` is nobody else's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tidegate.holds.uid_range import check_range, known
from tidegate.model.errors import StartError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("passwd", "joe:x:30000:100::/:/bin/sh"),
        ("group", "joes:x:39999:"),
        ("subuid", "joe:29000:1001"),
        ("subgid", "joe:10000:65536"),
    ],
)
def test_whoever_has_a_part_of_it_is_named(tmp_path: Path, name: str, line: str) -> None:
    """A user, a group, subordinate ids (HLD-3)."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / name).write_text(f"root:x:0:0::/root:/bin/sh\n{line}\n")
    with pytest.raises(StartError, match="joe") as error:
        check_range(str(tmp_path))
    assert error.value.code == "uid-range"


def test_neighbours_of_the_range_are_fine(tmp_path: Path) -> None:
    """29999, 40000 and the usual 100000 (HLD-3)."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text("a:x:29999:1::/:\nb:x:40000:1::/:\n# c:x:30001:1::/:\nbroken\n")
    (tmp_path / "etc/subuid").write_text("a:29000:1000\nb:100000:65536\nc:35000:0\n")
    check_range(str(tmp_path))
    check_range(str(tmp_path / "nothing"))


def test_root_is_known_and_the_range_is_not() -> None:
    """What a directory says counts, too (HLD-3)."""
    assert known(0)
    assert not known(39998)
