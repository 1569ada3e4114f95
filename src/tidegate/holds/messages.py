"""Why a hold cannot be had here, and the exact thing to do about it: one line each (HLD-12).

The child says at which step and with which errno it failed; the facts that explain it are then read from this machine:
settings, AppArmor, seccomp, capabilities, the kernel's version. There is never a fall-back: weaker is chosen by name.
"""

from __future__ import annotations

import errno
import os
import sys

from tidegate.holds import landlock, linux
from tidegate.holds.userns import CAP_SETFCAP
from tidegate.model.errors import StartError

DENIED = (errno.EPERM, errno.EACCES)
NEEDED_KERNEL = "5.12"  # mount_setattr; the rest of the new mount API is 5.2
NETFILTER = "nf_tables nft_chain_nat nft_ct nft_limit nft_log nft_nat nft_reject_inet nfnetlink_log"
_MEANING = {
    "unshare": "make namespaces for the task",
    "fork": "start the first process of the task",
    "map": "map this user into the task's namespace",
    "loopback": "bring up the task's loopback interface",
    "listener": "listen inside the task's network namespace",
    "capture": "capture the connections of the task",
    "view": "set up the files that the task sees",
    "agent": "make the socket of the task's ssh agent",
    "enter": "give up all rights before the task starts",
    "cwd": "enter the working directory inside the hold",
}
IN_A_TASK = "TIDEGATE_TASK"  # every task has it in its environment
_OF_A_TOOL = "TIDEGATE_TOOL"  # and the programs that run for one, which are outside of it
_INSIDE_ALREADY = "run the command as it is; the gate around it stays"
_LIMITS = ("user", "mnt", "net", "pid", "ipc")


class Facts:
    """What this machine says about itself; read only when something failed. Tests give a root of their own."""

    def __init__(self, root: str = "/") -> None:
        self._root = root

    def setting(self, path: str) -> str:
        """The text of a file below the root, stripped; empty where it cannot be read."""
        try:
            with open(os.path.join(self._root, path), encoding="ascii", errors="replace") as file:
                return file.read().strip()
        except OSError:
            return ""

    def status(self, field: str) -> str:
        """A field of /proc/self/status."""
        for line in self.setting("proc/self/status").splitlines():
            if line.startswith(field + ":"):
                return line.partition(":")[2].strip()
        return ""

    def exists(self, path: str) -> bool:
        """Whether this path is there."""
        return os.path.exists(os.path.join(self._root, path))


def explain(stage: str, code: int, text: str, facts: Facts | None = None) -> StartError:
    """The error for a step that failed with this errno (0: `text` says it all)."""
    facts = facts or Facts()
    found = None
    if code in DENIED:
        found = _denied(stage, text, facts)
    elif stage == "capture":
        found = _hold_in_hold(facts)  # its filter knows no netfilter
    elif code in (errno.ENOSPC, errno.EUSERS):
        found = _exhausted(facts)
    elif code == errno.ENOSYS:
        found = _old_kernel(text, facts)
    elif code == errno.EINVAL and stage == "unshare":
        found = _no_namespaces(facts)
    elif code == errno.EADDRINUSE:
        found = ("the port of the gate is taken inside the task's own network", "this is a bug of tidegate; report it")
    elif stage == "cwd":
        found = (f"the task cannot enter its working directory ({_reason(code, text)})", "share it: --share PATH")
    if found is None and stage == "capture":
        found = _no_capture(_reason(code, text))
    if found:
        return StartError(found[0], fix=found[1] + _or_without(stage, found), code=f"hold-{stage}")
    if stage == "selftest" or not code:
        return StartError(text, code=f"hold-{stage}")
    return StartError(
        f"cannot {_MEANING.get(stage, stage)}: {_reason(code, text)}",
        fix="`tidegate doctor` tells more",
        code=f"hold-{stage}",
    )


def _or_without(stage: str, found: tuple[str, str]) -> str:
    """The hold that works where namespaces do not, where this kernel has what that needs (HLD-12)."""
    works = stage in ("unshare", "fork", "map", "view", "loopback") and not found[1].startswith(_INSIDE_ALREADY)
    return "; or --hold landlock, which makes none" if works and landlock.abi() >= landlock.SCOPE_ABI else ""


def refuse_in_a_task(facts: Facts | None = None) -> None:
    """Refuse a hold inside a hold before anything is made for it: later each hold fails at a place of its own.

    Raises:
        StartError: where this process is in a task.
    """
    nested = None if _OF_A_TOOL in os.environ else _hold_in_hold(facts or Facts())
    if nested is not None:
        raise StartError(nested[0], fix=nested[1], code="hold-nested")


def canary_heard(names: list[str]) -> StartError:
    """A probe came through the fence."""
    return StartError(
        f"the self-test of the hold failed: a probe from inside reached {', '.join(names)} of this machine",
        fix="the task was not started; report it, it is a bug of tidegate or of the kernel",
        code="self-test",
    )


def ended_early() -> StartError:
    """Init ended without a word."""
    return StartError(
        "the first process of the task ended before the task could start",
        fix="it was killed from outside, or memory ran out; see `dmesg`",
        code="hold-ended",
    )


def too_many_ports(most: int) -> StartError:
    """More ports than there can be listeners."""
    return StartError(
        f"the policy names more ports than --capture ports can listen on ({most} with the common ones)",
        fix="--capture on needs no list of ports; or name fewer",
        code="hold-capture",
    )


def port_taken(port: int) -> StartError:
    """A port to be published that the gate has inside."""
    return StartError(
        f"--publish: port {port} inside belongs to the gate, so the command cannot listen there",
        fix="let it listen on another port; --capture ports takes the common ones, --capture on takes none",
        code="hold-published",
    )


def unknown_machine() -> StartError:
    """The numbers of the system calls are not known."""
    return StartError(
        f"no hold for {linux.MACHINE}", fix="tidegate confines on x86_64 and aarch64 Linux", code="hold-machine"
    )


def no_landlock(abi: int) -> StartError:
    """The kernel's Landlock cannot do what the hold `landlock` needs."""
    what = f"this kernel's Landlock (ABI {abi}) scopes no signals" if abi else "Landlock is not there"
    return StartError(
        f"--hold landlock: {what}",
        fix="it needs Linux 6.12 with landlock among its security modules (see /sys/kernel/security/lsm)",
        code="hold-landlock",
    )


def not_without_namespaces(option: str, fix: str) -> StartError:
    """Something that needs a network of the task's own."""
    return StartError(f"{option} does not work with --hold landlock", fix=fix, code="hold-landlock")


def apparmor_profile(program: str) -> str:
    """The AppArmor profile that lets this program make user namespaces, as one line."""
    return f"abi <abi/4.0>, include <tunables/global> profile tidegate {program} flags=(unconfined) {{ userns, }}"


def _denied(stage: str, text: str, facts: Facts) -> tuple[str, str] | None:
    root = os.geteuid() == 0
    nested = _hold_in_hold(facts)
    if nested:
        return nested
    if not root and facts.setting("proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
        profile = apparmor_profile(os.path.realpath(sys.executable))
        return (
            (
                "AppArmor forbids user namespaces to ordinary programs here"
                " (kernel.apparmor_restrict_unprivileged_userns=1, as on Ubuntu 24.04)"
            ),
            (
                f"as root, echo '{profile}' > /etc/apparmor.d/tidegate && apparmor_parser -r /etc/apparmor.d/tidegate;"
                " or sysctl -w kernel.apparmor_restrict_unprivileged_userns=0; or run tidegate as root"
            ),
        )
    if not root and facts.setting("proc/sys/kernel/unprivileged_userns_clone") == "0":
        return (
            "this machine forbids user namespaces to ordinary users (kernel.unprivileged_userns_clone=0)",
            "as root, sysctl -w kernel.unprivileged_userns_clone=1; or run tidegate as root",
        )
    if stage == "map" and root and not int(facts.status("CapEff") or "0", 16) >> CAP_SETFCAP & 1:
        return (
            "root may not map itself into a namespace here: CAP_SETFCAP is missing, as in a container without rights",
            "start the container with --cap-add SETFCAP, or run tidegate as an ordinary user in it",
        )
    if stage == "view" and text == "proc":
        return (
            "a fresh /proc cannot be mounted: parts of /proc are masked here, as in a container",
            (
                "start the container with docker's --security-opt systempaths=unconfined"
                " (podman: --security-opt unmask=ALL; Kubernetes: procMount: Unmasked)"
            ),
        )
    if facts.status("Seccomp") == "2":
        return (
            f"a seccomp filter of the surrounding container does not let tidegate {_MEANING.get(stage, stage)}",
            (
                "start the container with --security-opt seccomp=unconfined, or with a profile that allows"
                " unshare, mount_setattr, open_tree, move_mount, fsopen, fsconfig and fsmount"
            ),
        )
    if stage == "unshare":
        return (
            "the kernel does not let this process make user namespaces (a chroot, or a security module, forbids it)",
            "run tidegate outside the chroot, or as root",
        )
    return None


def _hold_in_hold(facts: Facts) -> tuple[str, str] | None:
    if IN_A_TASK in os.environ and facts.status("NoNewPrivs") == "1":
        return (
            "this is a task of tidegate already, and there is no hold inside a hold",
            _INSIDE_ALREADY,
        )
    return None


def _exhausted(facts: Facts) -> tuple[str, str]:
    for kind in _LIMITS:
        name = f"max_{kind}_namespaces"
        if facts.setting(f"proc/sys/user/{name}") == "0":
            return (
                f"this machine allows no {kind} namespaces (user.{name}=0)",
                f"as root, sysctl -w user.{name}=15000",
            )
    return (
        "this machine allows no more namespaces (user.max_*_namespaces is reached, or they are nested too deep)",
        "as root, raise user.max_user_namespaces and its neighbours, or run tidegate outside other sandboxes",
    )


def _old_kernel(text: str, facts: Facts) -> tuple[str, str]:
    release = facts.setting("proc/sys/kernel/osrelease") or os.uname().release
    if facts.status("Seccomp") == "2":
        return (
            f"the kernel, or a seccomp filter around this process, does not know {text}",
            f"tidegate needs Linux {NEEDED_KERNEL}; in a container, --security-opt seccomp=unconfined",
        )
    return (
        f"this kernel ({release}) does not know {text}",
        f"tidegate needs Linux {NEEDED_KERNEL} or later for this hold",
    )


def _no_namespaces(facts: Facts) -> tuple[str, str] | None:
    for kind in _LIMITS:
        if not facts.exists(f"proc/self/ns/{kind}"):
            return (
                f"this kernel was built without {kind} namespaces",
                "use a kernel with CONFIG_USER_NS, CONFIG_NET_NS, CONFIG_PID_NS and CONFIG_IPC_NS",
            )
    return None


def _no_capture(reason: str) -> tuple[str, str]:
    return (
        f"this kernel cannot capture a task's connections ({reason})",
        (
            f"as root, modprobe -a {NETFILTER}; where the kernel has none, by name: --capture ports (some ports only)"
            " or --capture off (programs must use the proxy)"
        ),
    )


def _reason(code: int, text: str) -> str:
    said = os.strerror(code) if code else ""
    return f"{text}: {said}" if said and text != said else text
