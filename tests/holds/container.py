"""Runs a command in a real container: `python container.py WISHES COMMAND...`, as root, with runc.

The container has the machine's files, read-only, and namespaces, capabilities, masked paths and a seccomp filter as
Docker gives them. All mounts are made in a mount namespace that ends with this process; runc removes the container.
WISHES are letters: `s` the filter, `m` the masks of /proc, `c` the capabilities.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from tests.lab import namespaces

# What Docker's default profile (moby, profiles/seccomp) refuses to who has no CAP_SYS_ADMIN, as far as it matters.
REFUSED = ("mount", "umount2", "unshare", "setns", "open_tree", "move_mount", "fsopen", "fsconfig", "fsmount")
MASKED = ("/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/scsi", "/sys/firmware")
CAPABILITIES = (
    *("CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID", "SETFCAP", "SETPCAP"),
    *("NET_BIND_SERVICE", "SYS_CHROOT", "KILL", "AUDIT_WRITE"),
)
CLONE_NEWUSER = 0x10000000


def configuration(wishes: str, command: list[str]) -> dict[str, object]:
    """The container as the runtime specification of the OCI describes one."""
    capabilities = [f"CAP_{name}" for name in CAPABILITIES if "c" in wishes]
    linux: dict[str, object] = {
        "namespaces": [{"type": kind} for kind in ("pid", "ipc", "uts", "mount", "network")],
        "maskedPaths": list(MASKED) if "m" in wishes else [],
        "readonlyPaths": ["/proc/sys", "/proc/sysrq-trigger"] if "m" in wishes else [],
    }
    if "s" in wishes:
        flag = {"index": 0, "value": CLONE_NEWUSER, "valueTwo": CLONE_NEWUSER, "op": "SCMP_CMP_MASKED_EQ"}
        linux["seccomp"] = {
            "defaultAction": "SCMP_ACT_ALLOW",
            "syscalls": [
                {"names": [*REFUSED, "mount_setattr"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1},
                {"names": ["clone"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1, "args": [flag]},
                {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38},
            ],
        }
    return {
        "ociVersion": "1.0.2",
        "process": {
            "terminal": False,
            "user": {"uid": 0, "gid": 0},
            "args": command,
            "env": ["PATH=/usr/bin:/bin:/usr/sbin", "HOME=/mnt", "TMPDIR=/mnt"],
            "cwd": "/mnt",
            "capabilities": dict.fromkeys(("bounding", "effective", "permitted"), capabilities),
        },
        "root": {"path": "rootfs", "readonly": True},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/mnt", "type": "tmpfs", "source": "tmpfs", "options": ["mode=700"]},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
            {"destination": "/dev/pts", "type": "devpts", "source": "devpts", "options": ["newinstance"]},
        ],
        "linux": linux,
    }


def main(wishes: str, command: list[str]) -> int:
    """Run it and return its exit status."""
    namespaces.unshare(namespaces.CLONE_NEWNS)
    namespaces.private_mounts()
    with tempfile.TemporaryDirectory(prefix="tidegate-container-", dir="/var/tmp") as bundle:
        root = os.path.join(bundle, "rootfs")
        os.mkdir(root)
        namespaces.mount("/", root, flags=namespaces.MS_BIND | namespaces.MS_REC)
        try:
            if not os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
                namespaces.mount("cgroup2", "/sys/fs/cgroup", "cgroup2")
            with open(os.path.join(bundle, "config.json"), "w", encoding="ascii") as file:
                json.dump(configuration(wishes, command), file)
            runc = ["runc", "--root", os.path.join(bundle, "state"), "run", "--bundle", bundle]
            return subprocess.run([*runc, f"tidegate-{os.getpid()}"], check=False, timeout=60).returncode
        finally:
            subprocess.run(["umount", "-l", root], check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
