"""A small internet in a network namespace of its own: whatever the rows try, no packet can leave this machine.

Every address of IPv4 and IPv6 leads back to this namespace, so a listener can stand at a public address, at a
metadata address or at a resolver's, and hear what got around the gate. Names are answered by a resolver of ours; the
files that say whom to ask are covered in a mount namespace of its own, and so are the sockets of services that would
ask for us from outside (nscd, systemd-resolved). All of it ends with the process.

An ordinary user gets there through a user namespace that keeps its id; what it executes there is as ordinary as before.
"""

from __future__ import annotations

import os

from tidegate.holds import linux, mounts, network, routes, userns

OWN4, OWN6 = "203.0.113.77", "2001:db8::77"
"""The addresses of this machine in there (RFC 5737, RFC 3849)."""
RESOLVER = "192.0.2.53"
_CAP_SYS_ADMIN = 21
_ASKED_FOR_US = ("/run/nscd", "/var/run/nscd", "/run/systemd/resolve")


def enter(folder: str) -> None:
    """Go there, for good; `folder` takes the files that are bound.

    Raises:
        OSError: where the kernel does not let us.
    """
    own_users = not _may_administer()
    user = os.geteuid(), os.getegid()
    linux.unshare(linux.CLONE_NEWNS | linux.CLONE_NEWNET | (linux.CLONE_NEWUSER if own_users else 0))
    if own_users:
        userns.write_maps(os.getpid(), user)
    mounts.set_attributes("/", 0, recursive=True, propagation=linux.MS_PRIVATE)
    network.raise_loopback()
    routes.capture_everything(OWN4, OWN6)
    for name, text in _files().items():
        path = os.path.realpath(f"/etc/{name}")
        if os.path.isfile(path):
            ours = os.path.join(folder, name)
            with open(ours, "w", encoding="ascii") as file:
                file.write(text)
            mounts.attach(mounts.clone(ours, recursive=False), path)
    for path in _ASKED_FOR_US:
        if os.path.isdir(path) and not os.path.islink(path):
            mounts.attach(mounts.new_file_system("tmpfs", (("mode", "555"),)), path)


def _files() -> dict[str, str]:
    return {
        "resolv.conf": f"nameserver {RESOLVER}\noptions timeout:1 attempts:2\n",
        "hosts": f"127.0.0.1 localhost\n::1 localhost\n127.0.1.1 {os.uname().nodename}\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    }


def _may_administer() -> bool:
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("CapEff:"):
                return bool(int(line.split()[1], 16) >> _CAP_SYS_ADMIN & 1)
    return False
