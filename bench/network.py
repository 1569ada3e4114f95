"""The bench's own corner of the machine: network, mount and PID namespaces in which everything is measured.

Loopback is the only interface there, so no packet can leave; ports in use outside do not matter; the name of the
origin stands in a hosts file that nobody else sees; and the kernel ends whatever is left when the bench ends.
Two settings differ from a fresh namespace: the range of local ports is wide, and few closed connections are
remembered (TIME_WAIT), because a proxy that opens thousands of connections a second would else spend its time
looking for free ports, as a machine with many clients would not.

Where the namespaces are not to be had the bench runs on the machine's own loopback, without the figures by name.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys

from bench.build import BUILD, RUN
from bench.loads import ELSEWHERE, NAME

MARK = "TIDEGATE_BENCH_NAMESPACE"

_SETTINGS = {
    "net/ipv4/ip_local_port_range": "2048 65535",
    "net/ipv4/tcp_max_tw_buckets": "1000",
    "net/core/somaxconn": "4096",
}
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _SIOCSIFADDR, _IFF_UP = 0x8913, 0x8914, 0x8916, 1  # netdevice(7)


def namespace_command() -> list[str] | None:
    """Return the unshare command that makes the namespaces here, or None where it cannot."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return None
    flags = ["--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
    ways = [flags] if os.geteuid() == 0 else []
    ways.append(["--user", "--map-root-user", *flags])
    for way in ways:
        done = subprocess.run([unshare, *way, "true"], capture_output=True, check=False)
        if done.returncode == 0:
            return [unshare, *way]
    return None


def inside() -> bool:
    """Whether this process already is in the bench's namespaces."""
    return os.environ.get(MARK) == "1"


def enter(arguments: list[str]) -> None:
    """Run this program again in the namespaces; returns only where they cannot be had."""
    command = namespace_command()
    if command is None:
        print("bench: no namespaces here; measuring on the machine's own loopback, nothing by name", file=sys.stderr)
        return
    os.environ[MARK] = "1"
    sys.stderr.flush()
    os.execv(command[0], [*command, sys.executable, "-m", "bench", *arguments])


def set_up() -> None:
    """Bring up loopback, the settings and the hosts file; called once, inside."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack("16sH14x", fcntl.ioctl(any_socket, _SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | _IFF_UP))
        address = struct.pack("16sHH4s8x", b"lo:0", socket.AF_INET, 0, socket.inet_aton(ELSEWHERE))
        fcntl.ioctl(any_socket, _SIOCSIFADDR, address)
    for name, value in _SETTINGS.items():
        try:
            with open(f"/proc/sys/{name}", "w", encoding="ascii") as setting:
                setting.write(value)
        except OSError as error:
            print(f"bench: {name} stays as it is: {error.strerror}", file=sys.stderr)
    hosts = os.path.join(BUILD, "hosts")
    with open(hosts, "w", encoding="ascii") as file:
        file.write(f"127.0.0.1 localhost\n127.0.0.1 {NAME}\n")
    subprocess.run(["mount", "--bind", hosts, "/etc/hosts"], check=True)
    # Logs and journals go to memory: what is compared is proxies, not how each of them treats the disk.
    os.makedirs(RUN, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", RUN], check=True)
