"""The map of the toy internet: one veth pair between "the machine" and "the internet", and who has which address.

The machine (where pytest and the gate run) has only `lo` and its end of the pair, because an address of one of its
interfaces would count as its own (ADR-2). The internet answers for the prefixes in LOCAL; what is routed to it and not
listed is dropped without a word, which is the black hole. UNREACHABLE fails at once, a different case.
What it does not do: serve anything (internet.py).
"""

from __future__ import annotations

import os
import shutil
import subprocess

MACHINE4, INTERNET4 = "10.77.0.2", "10.77.0.1"
MACHINE6, INTERNET6 = "fd00:77::2", "fd00:77::1"
BLACK_HOLE6 = "2600:dead::1"
BLACK_HOLE4 = "1.2.99.1"
UNREACHABLE4 = "1.2.98.1"
UNREACHABLE6 = "2600:dead:beef::1"
METADATA = "169.254.169.254"

LOCAL4 = (
    "1.2.3.0/24",  # public
    "1.2.4.0/24",  # public too, where a test needs two networks
    "8.8.8.8/32",
    "10.9.8.0/24",  # private
    "192.168.55.0/24",
    "172.16.5.0/24",
    "100.64.5.0/24",
    "169.254.169.254/32",  # cloud metadata: AWS, Google, Azure …
    "169.254.1.1/32",
    "100.100.100.200/32",  # … Alibaba
    "168.63.129.16/32",  # … Azure's wire server
    "192.0.0.192/32",  # … Oracle
)
LOCAL6 = (
    "2600:beef::/64",  # public
    "64:ff9b::/96",  # NAT64
    "64:ff9b:1::/48",
    "2002::/16",
    "fd12:3456::/64",  # private
    "fd00:ec2::254/128",
)


def find_ip() -> str | None:
    """Return the path of iproute2's `ip`, or None."""
    return shutil.which("ip", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def batch(lines: list[str]) -> None:
    """Run lines of `ip`, all in one process.

    Raises:
        RuntimeError: with what `ip` said.
    """
    tool = find_ip()
    if tool is None:
        raise RuntimeError("iproute2 is missing: install it, or run scripts/setup as root")
    done = subprocess.run(
        [tool, "-batch", "-"], input="\n".join(lines) + "\n", text=True, capture_output=True, check=False, timeout=30
    )
    if done.returncode:
        raise RuntimeError(f"ip: {done.stderr.strip()}")


def enable_ipv6() -> bool:
    """Turn IPv6 on in this network namespace; False where the kernel has none."""
    try:
        for name in ("all", "default"):
            with open(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6", "r+", encoding="ascii") as file:
                if file.read().strip() != "0":
                    file.seek(0)
                    file.write("0")
    except FileNotFoundError:
        return False
    except OSError:
        with open("/proc/sys/net/ipv6/conf/all/disable_ipv6", encoding="ascii") as file:
            return file.read().strip() == "0"
    return True


def lay_machine(internet_pid: int, *, ipv6: bool) -> None:
    """Make the pair with one end in the namespace of `internet_pid`, and the machine's routes."""
    batch([f"link add m0 type veth peer name i0 netns {internet_pid}"])
    lines = [
        f"addr add {MACHINE4}/24 dev m0",
        "link set m0 up",
        f"route add default via {INTERNET4}",
        f"route add unreachable {UNREACHABLE4}/32",
    ]
    if ipv6:
        lines += [
            f"addr add {MACHINE6}/64 dev m0 nodad",
            f"route add default via {INTERNET6}",
            f"route add unreachable {UNREACHABLE6}/128",
        ]
    batch(lines)


def drop_what_is_for_nobody() -> None:
    """Forward nothing in this network namespace, which may have begun with the machine's own setting."""
    for name in ("ipv4/ip_forward", "ipv6/conf/all/forwarding"):
        try:
            with open(f"/proc/sys/net/{name}", "r+", encoding="ascii") as file:
                if file.read().strip() != "0":
                    file.seek(0)
                    file.write("0")
        except OSError:
            continue  # a kernel without it, or no right to it: the test of the black hole says so


def lay_internet(*, ipv6: bool) -> None:
    """Give the internet its end of the pair and its addresses."""
    drop_what_is_for_nobody()
    lines = [f"addr add {INTERNET4}/24 dev i0", "link set i0 up"]
    lines += [f"route add local {prefix} dev lo" for prefix in LOCAL4]
    if ipv6:
        lines.append(f"addr add {INTERNET6}/64 dev i0 nodad")
        lines += [f"route add local {prefix} dev lo" for prefix in LOCAL6]
    batch(lines)
