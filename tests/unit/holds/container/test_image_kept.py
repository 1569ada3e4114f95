"""What is kept of an image, without an engine; with real ones it is tried in tests/holds/test_inside_tls.py."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from tests.unit.holds.container.test_image_files import an_engine
from tidegate.holds.container import image_kept
from tidegate.holds.container.image_kept import FOLDER, KEPT, files_of

if TYPE_CHECKING:
    from pathlib import Path

PATHS = ("/there", "/missing")
FOUND = {"/there": b"roots"}


def image(number: int = 1, **more: str) -> dict[str, str]:
    """What an engine says of an image."""
    return {"Id": f"sha256:{number:064x}", **more}


def looks(folder: Path) -> int:
    """How often an image was looked into."""
    told = folder / "told"
    return sum(line.startswith("create ") for line in told.read_text().splitlines()) if told.exists() else 0


def kept(folder: Path) -> list[Path]:
    """The files that are kept."""
    return sorted((folder / FOLDER).iterdir())


def test_an_image_is_looked_into_once(tmp_path: Path) -> None:
    """INS-2: by its id, whatever its name is, so that what is kept is of what was looked into; nobody else reads it."""
    engine = an_engine(tmp_path)
    for name in ("a:1", "a:1", "b:2"):
        assert files_of(engine, image(), name, PATHS, str(tmp_path)) == FOUND
    assert looks(tmp_path) == 1
    assert f" {image()['Id']} /" in (tmp_path / "told").read_text().splitlines()[0]
    assert [one.stat().st_mode & 0o777 for one in (tmp_path / FOLDER, *kept(tmp_path))] == [0o700, 0o600]


@pytest.mark.parametrize("other", [image(2), image(Architecture="arm64"), image(Variant="v7")])
def test_another_image_is_looked_into(tmp_path: Path, other: dict[str, str]) -> None:
    """INS-2: a name that leads to another image now, or the same index for another machine; other paths as well."""
    engine = an_engine(tmp_path)
    files_of(engine, image(), "a:1", PATHS, str(tmp_path))
    files_of(engine, other, "a:1", PATHS, str(tmp_path))
    assert looks(tmp_path) == 2
    assert files_of(engine, image(), "a:1", ["/missing"], str(tmp_path)) == {}
    assert looks(tmp_path) == 3


def test_an_image_without_a_digest_is_never_kept(tmp_path: Path) -> None:
    """INS-2: what has no id that says what it is is read each time, and no id makes a path."""
    for strange in ({}, {"Id": "../../x"}, {"Id": "sha256:12"}):
        assert files_of(an_engine(tmp_path), strange, "a:1", PATHS, str(tmp_path)) == FOUND
    assert looks(tmp_path) == 3
    assert not (tmp_path / FOLDER).exists()


@pytest.mark.parametrize("broken", ["", "{", "[]", '{"/there": 1}', '{"/other": "x"}', '{"/there": "\\u2026"}'])
def test_what_is_broken_is_made_anew(tmp_path: Path, broken: str) -> None:
    """INS-2: a torn file is no answer, and is mended."""
    engine = an_engine(tmp_path)
    files_of(engine, image(), "a:1", PATHS, str(tmp_path))
    kept(tmp_path)[0].write_text(broken)
    assert [files_of(engine, image(), "a:1", PATHS, str(tmp_path)) for _ in range(2)] == [FOUND, FOUND]
    assert looks(tmp_path) == 2


def test_where_nothing_can_be_kept_it_is_read(tmp_path: Path) -> None:
    """INS-2: a state folder that takes no file costs time alone; a link in a file's place is not followed."""
    (tmp_path / FOLDER).write_text("")
    assert files_of(an_engine(tmp_path), image(), "a:1", PATHS, str(tmp_path)) == FOUND
    (tmp_path / FOLDER).unlink()
    files_of(an_engine(tmp_path), image(), "a:1", PATHS, str(tmp_path))
    (place,) = kept(tmp_path)
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    assert files_of(an_engine(tmp_path), image(), "a:1", PATHS, str(tmp_path)) == FOUND
    assert not place.is_symlink()


def test_it_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """INS-2: what was used last stays, what is too large is not kept, and nothing half-made is left."""
    engine = an_engine(tmp_path)
    for number in range(KEPT):
        files_of(engine, image(number), "a:1", PATHS, str(tmp_path))
    for age, one in enumerate(kept(tmp_path)):
        os.utime(one, (age, age))
    oldest, second, *_ = kept(tmp_path)
    for number in range(KEPT):  # which of the images the oldest is of
        before = oldest.stat().st_mtime
        files_of(engine, image(number), "a:1", PATHS, str(tmp_path))
        if oldest.stat().st_mtime != before:
            break
        os.utime(second, (1, 1))
    assert looks(tmp_path) == KEPT
    os.utime(second, (1, 1))
    files_of(engine, image(KEPT), "a:1", PATHS, str(tmp_path))
    assert len(kept(tmp_path)) == KEPT
    assert oldest.exists()
    assert not second.exists()
    monkeypatch.setattr(image_kept, "LARGEST", 4)
    files_of(engine, image(KEPT + 1), "a:1", PATHS, str(tmp_path))
    assert len([one for one in kept(tmp_path) if not one.name.startswith(".")]) == KEPT


def test_two_at_once(tmp_path: Path) -> None:
    """INS-2: each has the whole of it, whoever was first."""
    engine = an_engine(tmp_path)
    found: list[dict[str, bytes]] = []
    start = threading.Barrier(6)

    def look() -> None:
        start.wait()
        found.append(files_of(engine, image(), "a:1", PATHS, str(tmp_path)))

    threads = [threading.Thread(target=look) for _ in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == [FOUND] * 6
    assert len(kept(tmp_path)) == 1
