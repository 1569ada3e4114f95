"""Why a hold cannot be had, in one line with the fix."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from tidegate.holds import messages
from tidegate.model.errors import StartError

if TYPE_CHECKING:
    from pathlib import Path

APPARMOR = "proc/sys/kernel/apparmor_restrict_unprivileged_userns"
CLONE = "proc/sys/kernel/unprivileged_userns_clone"


def facts(folder: Path, files: dict[str, str]) -> messages.Facts:
    """A machine that says this about itself."""
    for kind in ("user", "mnt", "net", "pid", "ipc"):
        files = {f"proc/self/ns/{kind}": "", **files}
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return messages.Facts(str(folder))


CASES = (
    ("unshare", errno.EPERM, "unshare", {APPARMOR: "1\n"}, "/etc/apparmor.d/tidegate", True),
    ("loopback", errno.EPERM, "x", {APPARMOR: "1\n"}, "kernel.apparmor_restrict_unprivileged_userns=0", True),
    ("unshare", errno.EACCES, "unshare", {APPARMOR: "1"}, "userns, }", True),
    ("unshare", errno.EPERM, "unshare", {CLONE: "0\n"}, "sysctl -w kernel.unprivileged_userns_clone=1", True),
    ("unshare", errno.EPERM, "unshare", {CLONE: "1\n", APPARMOR: "0"}, "security module", False),
    ("unshare", errno.EPERM, "unshare", {"proc/self/status": "Seccomp:\t2\n"}, "seccomp=unconfined", False),
    ("view", errno.EPERM, "proc", {"proc/self/status": "Seccomp:\t2\n"}, "systempaths=unconfined", False),
    ("view", errno.EPERM, "mount_setattr", {"proc/self/status": "Seccomp:\t2\n"}, "seccomp=unconfined", False),
    ("unshare", errno.ENOSPC, "unshare", {"proc/sys/user/max_user_namespaces": "0\n"}, "user.max_user_names", False),
    ("unshare", errno.ENOSPC, "unshare", {"proc/sys/user/max_net_namespaces": "0\n"}, "user.max_net_names", False),
    ("unshare", errno.EUSERS, "unshare", {"proc/sys/user/max_user_namespaces": "9\n"}, "nested too deep", False),
    ("view", errno.ENOSYS, "mount_setattr", {"proc/sys/kernel/osrelease": "5.10.0\n"}, "(5.10.0) does not know", False),
    ("view", errno.ENOSYS, "open_tree", {"proc/self/status": "Seccomp:\t2\n"}, "seccomp=unconfined", False),
    ("listener", errno.EADDRINUSE, "x", {}, "port of the gate", False),
    ("capture", errno.ENOENT, "the nat chain capture", {}, "modprobe -a nf_tables", False),
    ("capture", errno.EOPNOTSUPP, "x", {}, "--capture ports", False),
    ("capture", errno.EPROTONOSUPPORT, "x", {}, "--capture off", False),
    ("capture", errno.EPERM, "x", {APPARMOR: "0"}, "--capture off", False),
    ("capture", errno.EPERM, "x", {APPARMOR: "1"}, "/etc/apparmor.d/tidegate", True),
    ("cwd", errno.ENOENT, "x", {}, "--share PATH", False),
    ("view", errno.ENOMEM, "move_mount", {}, "Cannot allocate memory", False),
)


@pytest.mark.parametrize(("stage", "code", "text", "files", "says", "unprivileged"), CASES)
def test_the_fix_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stage: str,
    code: int,
    text: str,
    files: dict[str, str],
    says: str,
    unprivileged: bool,
) -> None:
    """Each cause has a line of its own with the exact setting, profile or option (HLD-12, HLD-16, B89, B92)."""
    if unprivileged:
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
    error = messages.explain(stage, code, text, facts(tmp_path, files))
    assert says in str(error)
    assert "\n" not in str(error)
    assert error.fix
    assert error.exit_status == 78


def test_a_kernel_without_namespaces(tmp_path: Path) -> None:
    """A kernel built without a kind of namespace is told as such (HLD-12)."""
    machine = facts(tmp_path, {})
    (tmp_path / "proc/self/ns/user").unlink()
    assert "without user namespaces" in str(messages.explain("unshare", errno.EINVAL, "unshare", machine))


def test_root_is_not_told_about_settings_for_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings that bind ordinary users do not bind root, so they are not the cause there (HLD-12)."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    said = str(messages.explain("unshare", errno.EPERM, "x", facts(tmp_path, {APPARMOR: "1", CLONE: "0"})))
    assert "apparmor" not in said.lower()
    assert "unprivileged_userns_clone" not in said


@pytest.mark.parametrize(("confined", "named"), [("1", True), ("0", False)])
def test_a_hold_inside_a_hold_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, confined: str, named: bool
) -> None:
    """Run inside a task it says so; the variable alone, outside, means nothing (HLD-12, B92)."""
    monkeypatch.setenv("TIDEGATE_TASK", "x")
    machine = facts(tmp_path, {"proc/self/status": f"NoNewPrivs:\t{confined}\nSeccomp:\t2\n"})
    assert ("inside a hold" in str(messages.explain("map", errno.EPERM, "uid_map", machine))) is named


@pytest.mark.parametrize(("confined", "tool", "refused"), [("1", "", True), ("0", "", False), ("1", "charge", False)])
def test_a_task_is_told_before_anything_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, confined: str, tool: str, refused: bool
) -> None:
    """HLD-12, B92: and neither whoever has the variable alone nor a tool's program, which is outside of it."""
    monkeypatch.setenv("TIDEGATE_TASK", "x")
    if tool:
        monkeypatch.setenv("TIDEGATE_TOOL", tool)
    machine = facts(tmp_path, {"proc/self/status": f"NoNewPrivs:\t{confined}\n"})
    if not refused:
        messages.refuse_in_a_task(machine)
        return
    with pytest.raises(StartError, match="inside a hold: run the command as it is"):
        messages.refuse_in_a_task(machine)


def test_a_reason_is_said_once(tmp_path: Path) -> None:
    """Where the text of a failure is the errno's own, it is not repeated."""
    said = str(messages.explain("cwd", errno.ENOENT, os.strerror(errno.ENOENT), facts(tmp_path, {})))
    assert said.count("No such file") == 1


def test_a_sentence_is_passed_on() -> None:
    """What the self-test or the plan said is said to the person as it is."""
    assert str(messages.explain("selftest", 0, "the fence leaks: report it")) == "the fence leaks: report it"


@pytest.mark.parametrize(
    "error", [messages.canary_heard(["tcp 127.0.0.1 port 5"]), messages.ended_early(), messages.unknown_machine()]
)
def test_other_errors_have_a_fix_too(error: messages.StartError) -> None:
    """One line, a fix, exit status 78 (HLD-7)."""
    assert error.fix
    assert "\n" not in str(error)
    assert error.exit_status == 78


def test_the_profile_is_one_line() -> None:
    """It names the program and the one right it gives."""
    profile = messages.apparmor_profile("/usr/bin/python3.11")
    assert "profile tidegate /usr/bin/python3.11 flags=(unconfined) { userns, }" in profile
    assert "\n" not in profile


def test_too_many_ports_say_what_needs_none() -> None:
    """HLD-7: where a listener for each port cannot be had, the choice is named and nothing is left out."""
    assert "--capture on" in messages.too_many_ports(200).fix


def test_a_port_of_the_gates_cannot_be_published() -> None:
    """HLD-10: which port, and what would do."""
    error = messages.port_taken(5432)
    assert error.exit_status == 78
    assert "port 5432 inside" in error.what
    assert "--capture on" in error.fix


@pytest.mark.parametrize(("effective", "told"), [("00000000000000c3", True), ("00000000800425fb", False)])
def test_root_without_the_right_to_map_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, effective: str, told: bool
) -> None:
    """Root of a container may lack CAP_SETFCAP, which the kernel wants for a map of root; with it that is no cause."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    machine = facts(tmp_path, {"proc/self/status": f"CapEff:\t{effective}\n"})
    assert ("--cap-add SETFCAP" in str(messages.explain("map", errno.EPERM, "uid_map", machine))) is told
