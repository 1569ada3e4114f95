"""tidegate.doctor.records."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.journal.actions_log import Written
from tidegate.doctor.check import FAIL, OK, WARN, Check
from tidegate.doctor.records import check_records


def rows(base: Path) -> list[Check]:
    """Return the rows for a state folder below `base`."""
    return check_records({"XDG_STATE_HOME": str(base), "HOME": "/"})


def test_a_folder_that_can_be_made_is_fine(tmp_path: Path) -> None:
    """SRV-5: before the first run there is none, and doctor makes none."""
    assert [check.state for check in rows(tmp_path / "a" / "b")] == [OK]
    assert not (tmp_path / "a").exists()


def test_a_home_that_is_not_there_fails(tmp_path: Path) -> None:
    """SRV-5: nobody makes it; its neighbour, where the state is elsewhere, is fine."""
    home = str(tmp_path / "home")
    (row,) = check_records({"HOME": home})
    assert (row.state, row.what) == (FAIL, f"the home folder {home!r} is not there")
    assert [one.state for one in check_records({"HOME": home, "XDG_STATE_HOME": str(tmp_path / "state")})] == [OK]


@pytest.mark.parametrize("kind", ["file", "open", "of another"])
def test_a_folder_that_cannot_be_used_fails(tmp_path: Path, kind: str) -> None:
    """SRV-5: one row that names the folder and what mends it."""
    state = tmp_path / "tidegate"
    if kind == "file":
        state.write_text("")
    else:
        state.mkdir(mode=0o700)
        if kind == "open":
            state.chmod(0o755)
        elif os.geteuid() == 0:
            os.chown(state, 12345, 12345)
        else:
            pytest.skip("needs root: a folder is to belong to someone else")
    (row,) = rows(tmp_path)
    assert row.state == FAIL
    assert str(state) in row.what
    assert row.fix
    assert (row.mend is not None) == (kind == "open")
    if row.mend is not None:
        row.mend()
        assert [check.state for check in rows(tmp_path)] == [OK]


def test_a_folder_that_cannot_be_written_fails() -> None:
    """SRV-5: tried as an ordinary user, since root writes everywhere."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(12345)
    try:
        (row,) = check_records({"XDG_STATE_HOME": "/usr/tidegate-state", "HOME": "/"})
    finally:
        os.seteuid(before)
    assert (row.state, row.what) == (FAIL, "/usr cannot be written")


def test_little_room_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JRN-5: a disk that is nearly full is said before lines are lost."""
    monkeypatch.setattr("tidegate.doctor.records.ROOM", 1 << 62)
    (row,) = rows(tmp_path)
    assert (row.state, row.name) == (WARN, "state folder")
    assert "MiB are left" in row.what


def test_the_action_log_is_verified(tmp_path: Path) -> None:
    """JRN-2: a log that was changed fails its row, with the command that names all of it."""
    state = tmp_path / "tidegate"
    state.mkdir(mode=0o700)
    written = Written(state)
    written.write(3)
    assert [(check.name, check.state) for check in rows(tmp_path)] == [("state folder", OK), ("action log", OK)]
    written.live.write_bytes(b"".join(written.lines()[:2]))
    row = rows(tmp_path)[1]
    assert (row.state, row.fix) == (FAIL, "tidegate log verify")
    (written.keys / "actions.key").unlink()
    assert "key of the action log" in rows(tmp_path)[1].what
