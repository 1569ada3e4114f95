"""Files of an image without running it; with real engines it is tried in tests/holds/test_inside_tls.py."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING

import pytest

from tests.unit.holds.container.test_engine import engine_that
from tidegate.holds.container.engine import PODMAN
from tidegate.holds.container.image_files import MOST, read_files
from tidegate.model.errors import StartError

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.holds.container.engine import Engine


def an_engine(folder: Path, name: str = "docker", *, says: str = "could not be found") -> Engine:
    """One whose containers have /there, a folder /folder, and nothing else; it writes down what it is told."""
    for path, kind in (("there", tarfile.REGTYPE), ("folder", tarfile.DIRTYPE)):
        written = io.BytesIO()
        with tarfile.open(fileobj=written, mode="w") as tar:
            member = tarfile.TarInfo(path)
            member.type, member.size = kind, 5 if kind == tarfile.REGTYPE else 0
            tar.addfile(member, io.BytesIO(b"roots"))
        (folder / path).write_bytes(written.getvalue())
    script = f"""echo "$*" >> {folder}/told
case "$*" in
create*) echo made;;
cp*made:/there*) cat {folder}/there;;
cp*made:/folder*) cat {folder}/folder;;
cp*) echo '{says}' >&2; exit 1;;
esac"""
    return engine_that(folder, script, name)


@pytest.mark.parametrize("name", ["docker", PODMAN])
def test_what_is_there_is_read_and_nothing_is_started(tmp_path: Path, name: str) -> None:
    """INS-2: a plain file is read, what is missing or a folder is not; the container is never started, and removed."""
    engine = an_engine(tmp_path, name)
    assert read_files(engine, "image", ["/there", "/missing", "/folder", "relative", "/there"]) == {"/there": b"roots"}
    verbs = [line.split()[0] for line in (tmp_path / "told").read_text().splitlines()]
    assert verbs == ["create", "cp", "cp", "cp", "rm"]
    assert ("--follow-link" in (tmp_path / "told").read_text()) is (name == "docker")


def test_nothing_wanted_is_nothing_asked(tmp_path: Path) -> None:
    """INS-2: the engine is left alone."""
    assert read_files(an_engine(tmp_path), "image", []) == {}
    assert not (tmp_path / "told").exists()


def test_an_engine_that_fails_stops_the_start(tmp_path: Path) -> None:
    """HLD-7: what the engine could not say is not taken for a file that is not there."""
    with pytest.raises(StartError, match="the disk is on fire"):
        read_files(an_engine(tmp_path, says="the disk is on fire"), "image", ["/x"])
    assert (tmp_path / "told").read_text().splitlines()[-1].startswith("rm ")


def test_no_more_is_read_than_a_file_of_roots_may_have(tmp_path: Path) -> None:
    """An image is anybody's: a link to a folder without end ends the reading, and a file that is too large is none."""
    (tmp_path / "zeros").symlink_to("/dev/zero")
    with tarfile.open(tmp_path / "large", mode="w") as tar:
        member = tarfile.TarInfo("large")
        member.size = MOST + 1
        tar.addfile(member, io.BytesIO(bytes(member.size)))
    script = f"""case "$*" in
create*) echo made;;
cp*made:/large*) cat {tmp_path}/large;;
cp*made:/zeros*) exec cat {tmp_path}/zeros;;
esac"""
    assert read_files(engine_that(tmp_path, script), "image", ["/large", "/zeros"]) == {}
