"""The hold `uid`: who the task is, what it sees, what it is refused."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.holds import held
from tests.unit.holds.uid_apart import NEEDS_ROOT
from tidegate.holds.hold import LaunchSpec
from tidegate.holds.uid import UID, closed_above
from tidegate.model.errors import StartError

if TYPE_CHECKING:
    from pathlib import Path


def sh(script: str, **wishes: Any) -> dict[str, Any]:
    """Hold a shell script."""
    return held.hold("uid", ["/bin/sh", "-c", script], **wishes)


@NEEDS_ROOT
def test_the_task_is_somebody_with_a_home() -> None:
    """It has a name, a home of its own that it can write, and no other group (HLD-3, HLD-14)."""
    answer = sh('echo "$(id -un) $(id -G) $(stat -c %u ~)"; touch ~/x; ls ~ $XDG_RUNTIME_DIR')
    name, group, owner = answer["out"].splitlines()[0].split()
    assert name == f"task-{group}"
    assert owner == group
    assert "x" in answer["out"].splitlines()[2]


@NEEDS_ROOT
def test_what_it_makes_is_the_workspace_owners(tmp_path: Path) -> None:
    """On the disk nothing is the uid's, so nothing is left when the uid is another task's (HLD-3)."""
    answer = sh("touch made; mkdir folder; stat -c %u . made; chmod u+s made; echo $?", workspace=str(tmp_path))
    uid, made, refused = answer["out"].splitlines()[0], answer["out"].splitlines()[1], answer["out"].splitlines()[-1]
    assert uid == made != "0"
    assert refused == "1"
    assert {path.stat().st_uid for path in tmp_path.iterdir()} == {tmp_path.stat().st_uid}
    assert (tmp_path / "made").stat().st_mode & 0o7000 == 0


@NEEDS_ROOT
def test_a_home_that_is_the_workspace_takes_no_new_name() -> None:
    """A start-up file that is not there cannot be made; what is there, and is no such file, can be changed (HLD-15)."""
    home = held.new_base()
    try:
        os.mkdir(f"{home}/project")
        script = "touch .bash_profile || echo refused; touch project/new && echo made"
        answer = sh(script, workspace=home, closed=[home])
        assert answer["out"].splitlines()[-2:] == ["refused", "made"], answer
        assert os.listdir(home) == ["project"]
    finally:
        shutil.rmtree(home)


@NEEDS_ROOT
def test_nothing_but_the_workspace_and_what_is_its_own_can_be_written() -> None:
    """Folders that everybody may write are its own, as /var/tmp; the rest is read-only (HLD-15)."""
    answer = sh("touch /var/tmp/a /tmp/a /dev/shm/a && echo own; touch /var/a /etc/a /run/lock/a 2>&1 | grep -c cannot")
    assert answer["out"] == "own\n2\n"


@NEEDS_ROOT
def test_without_capture_there_is_the_proxy_and_nothing_else() -> None:
    """`--capture off`: the gate's address answers, other addresses are refused at once (HLD-3)."""
    answer = held.hold(
        "uid",
        [held.PYTHON, "-c", ("import socket\nfor at in (('127.0.0.1', 3128), ('1.2.3.4', 80)):\n"
         " s = socket.socket(); s.settimeout(5)\n print(s.connect_ex(at))")],
        capture="off",
    )  # fmt: skip
    assert answer["out"] == "0\n111\n", answer


@NEEDS_ROOT
@pytest.mark.parametrize("hole", ["filter", "capabilities", "tmp"])
def test_a_hole_in_it_is_found_by_the_self_test(hole: str) -> None:
    """HLD-11: with a part taken out the task does not start."""
    answer = sh("echo ran", hole=hole)
    assert "ran" not in answer["out"]
    assert "error" in answer


@NEEDS_ROOT
def test_a_table_without_its_last_rules_is_found_by_the_self_test() -> None:
    """HLD-11: canaries of this machine hear the probes where the fence is open, and the task does not start."""
    answer = sh("echo ran", hole="fence")
    assert answer["code"] in ("hold-selftest", "self-test"), answer
    assert "ran" not in answer["out"]


@pytest.mark.parametrize(
    ("change", "code"), [({"capture": "ports"}, "hold-capture"), ({"published": (8080,)}, "hold-published")]
)
def test_what_it_cannot_do_is_said(change: dict[str, Any], code: str) -> None:
    """Before anything is made: 78, with what to write instead (HLD-7, HLD-10)."""
    with pytest.raises(StartError) as error:
        UID.launch(LaunchSpec(argv=(), env={}, cwd="/").replace(**change), None)
    assert error.value.code == code
    assert error.value.exit_status == 78


def test_the_topmost_closed_folder_is_found(tmp_path: Path) -> None:
    """A task's user must reach its workspace below a folder that only its owner may enter (HLD-3)."""
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    above = closed_above(str(tmp_path))  # pytest's own folders may be closed or, by another test, open
    for open_one in (tmp_path, tmp_path / "a"):
        open_one.chmod(0o755)
    (tmp_path / "a" / "b").chmod(0o700)
    assert closed_above(str(deep)) == (above or str(tmp_path / "a" / "b"))
    assert closed_above("/usr/bin") == ""
