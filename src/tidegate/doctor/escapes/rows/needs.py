"""What a task needs: the same things done within the rules must pass."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import signal
import socket
import struct
import time

from tidegate.doctor.escapes.table import CAPTURED, GATED, HELD, HOMED, NETNS, NETWORKED, OPEN, neighbour
from tidegate.doctor.escapes.tools import PATIENCE, mount, nested, number, syscall, tcp, umount, unix, unshare, wrong


@neighbour(holds=(NETNS, CAPTURED, OPEN))
def servers_on_loopback() -> None:
    """A server of the task's own, TCP and UDP, IPv4."""
    _serve(socket.AF_INET, "127.0.0.1")


@neighbour(holds=(NETNS, CAPTURED, OPEN))
def servers_on_loopback_by_ipv6() -> None:
    """The same over IPv6, where the machine has it."""
    if os.path.exists("/proc/net/if_inet6"):
        _serve(socket.AF_INET6, "::1")


@neighbour(holds=GATED)
def servers_on_every_address() -> None:
    """A server on 0.0.0.0 is reached by loopback and by another loopback address (B80)."""
    with socket.create_server(("0.0.0.0", 0)) as server:
        for address in ("127.0.0.1", "127.1.2.3"):
            socket.create_connection((address, server.getsockname()[1]), PATIENCE).close()


def _serve(family: int, address: str) -> None:
    with socket.socket(family, socket.SOCK_STREAM) as server, socket.socket(family, socket.SOCK_STREAM) as client:
        server.bind((address, 0))
        server.listen()
        client.settimeout(PATIENCE)
        client.connect(server.getsockname())
        server.accept()[0].sendall(b"hello")
        if client.recv(5) != b"hello":
            wrong("nothing came through")
    with socket.socket(family, socket.SOCK_DGRAM) as one, socket.socket(family, socket.SOCK_DGRAM) as other:
        one.bind((address, 0))
        one.settimeout(PATIENCE)
        other.sendto(b"hello", one.getsockname())
        if one.recv(5) != b"hello":
            wrong("no datagram came through")


@neighbour(holds=GATED)
def the_gate() -> None:
    """The gate is where the proxy settings say."""
    with socket.create_connection(("127.0.0.1", HELD["port"]), PATIENCE) as wire:
        wire.sendall(b"CONNECT denied.test:443 HTTP/1.1\r\nHost: denied.test:443\r\n\r\n")
        if not wire.recv(99).startswith(b"HTTP/1.1 403"):
            wrong("no gate")


@neighbour(holds=(OPEN,))
def the_machines_network() -> None:
    """The hold `open` reaches the machine's listeners: its network is the machine's."""
    tcp(socket.AF_INET, "127.0.0.1", HELD["open_tcp4"])


@neighbour()
def unix_sockets_of_our_own() -> None:
    """Unix sockets by path, by abstract name and in pairs; of this process and of another one of the task."""
    places = (HELD["workspace"] + "/own.sock", "/tmp/own.sock", f"\0own-{os.getpid()}")
    for address in places:
        with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
            server.bind(address)
            server.listen()
            client.connect(address)
        if not address.startswith("\0"):
            os.unlink(address)
    for one in socket.socketpair():
        one.close()
    for address in places:
        _served_by_another(address)


def _served_by_another(address: str) -> None:
    """Connect to a server in another process, which has made its socket and serves one client."""
    here, there = socket.socketpair()
    if os.fork() == 0:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(address)
            server.listen()
            there.send(b"x")
            server.accept()[0].send(b"hello")
        os._exit(0)
    here.recv(1)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(address)
        if client.recv(9) != b"hello":
            wrong(address)
    os.wait()
    if not address.startswith("\0"):
        os.unlink(address)


@neighbour()
def unix_sockets_in_every_manner() -> None:
    """By relative path, symlink, descriptor and /proc; streams and packets; without waiting; refused as ever."""
    os.chdir(HELD["workspace"])
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
        with socket.socket(socket.AF_UNIX, kind) as server:
            server.bind("own")
            server.listen()
            os.symlink("own", "way")
            held = os.open("own", os.O_PATH)
            for address in ("own", "./way", "/proc/self/cwd/own", f"/proc/self/fd/{held}"):
                with socket.socket(socket.AF_UNIX, kind) as client:
                    client.setblocking(False)
                    client.connect(address)
                    client.send(b"hello")
                    if server.accept()[0].recv(9) != b"hello":
                        wrong(address)
            os.unlink("way")
        for address, refusal in (("own", errno.ECONNREFUSED), ("none", errno.ENOENT), ("own/x", errno.ENOTDIR)):
            with socket.socket(socket.AF_UNIX, kind) as client:
                if client.connect_ex(address) != refusal:
                    wrong(f"{address} is not refused")
        os.close(held)
        os.unlink("own")


@neighbour()
def a_full_backlog_is_waited_for() -> None:
    """A call that must wait waits, holds up no other, and is served when there is room."""
    import threading

    server = socket.socket(socket.AF_UNIX)
    server.bind("\0full")
    server.listen(0)
    clients = [socket.socket(socket.AF_UNIX) for _ in range(4)]
    threads = [threading.Thread(target=client.connect, args=("\0full",)) for client in clients]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    hasty = socket.socket(socket.AF_UNIX)
    hasty.setblocking(False)
    if HELD["hold"] != OPEN and hasty.connect_ex("\0full") != errno.EAGAIN:
        wrong("there was room")
    hasty.settimeout(None)
    hasty.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 50_000))
    if hasty.connect_ex("\0full") != errno.EAGAIN:
        wrong("it waited for ever")
    for _ in threads:
        server.accept()
    for thread in threads:
        thread.join()


@neighbour(who="ordinary")
def unix_sockets_in_namespaces_of_our_own() -> None:
    """A server and its client in other mounts, another root and another network."""
    nested(network=True)
    mount("tmpfs", "/tmp", "tmpfs")
    os.chroot("/tmp")
    os.chdir("/")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("/own")
        server.listen()
        unix("/own")
        unix("own")


@neighbour(holds=NETWORKED)
def interfaces() -> None:
    """Programs may look at interfaces and routes."""
    if "lo" not in [name for _number, name in socket.if_nameindex()]:
        wrong("no loopback interface")
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close()


@neighbour(who="ordinary")
def namespaces_of_our_own() -> None:
    """User, mount, PID, network and IPC namespaces inside, and a mount in them: browsers need that."""
    nested(network=True)
    unshare(0x20000000 | 0x08000000)
    mount("tmpfs", "/tmp", "tmpfs")
    with open("/tmp/file", "w", encoding="ascii") as file:
        file.write("mine")
    umount("/tmp")
    os.chroot("/usr")


@neighbour(holds=HOMED)
def own_folders() -> None:
    """The workspace, home, /tmp, /dev/shm, the runtime folder and TMPDIR can be written."""
    for folder in (
        HELD["workspace"],
        HELD["home"],
        "/tmp",
        "/dev/shm",
        os.environ["XDG_RUNTIME_DIR"],
        os.environ["TMPDIR"],
    ):
        with open(folder + "/probe", "w", encoding="ascii") as file:
            file.write("mine")
        os.unlink(folder + "/probe")
    if os.stat(os.environ["XDG_RUNTIME_DIR"]).st_mode & 0o777 != 0o700:
        wrong("the runtime folder is open to others")


@neighbour()
def nothing_of_the_machines_tmp() -> None:
    """Nothing of the machine's /tmp and /run is in sight."""
    if os.path.exists(HELD["unix_tmp"]) or "lock" not in os.listdir("/run"):
        wrong("the machine's")


@neighbour(holds=HOMED)
def renaming_beside_what_is_protected() -> None:
    """Names beside protected ones are the task's: renamed across folders, linked, removed."""
    above = os.path.dirname(HELD["hidden"])
    os.makedirs(above + "/other/deep", exist_ok=True)
    os.rename(above + "/other", HELD["home"] + "/other2")
    os.rename(HELD["home"] + "/other2", HELD["workspace"] + "/other3")
    os.rmdir(HELD["workspace"] + "/other3/deep")
    os.rmdir(HELD["workspace"] + "/other3")


@neighbour()
def reading_the_installation() -> None:
    """What is read-only can be read and run."""
    with open(HELD["readonly"] + "/code.py", encoding="ascii") as file:
        exec(file.read(), {})


@neighbour()
def devices() -> None:
    """The devices that programs expect, and a pty."""
    with open("/dev/null", "wb") as null:
        null.write(b"x")
    for name in ("zero", "urandom", "random"):
        with open("/dev/" + name, "rb") as device:
            device.read(4)
    master, slave = os.openpty()
    if not os.ttyname(slave).startswith("/dev/pts/"):
        wrong("the pty has no name")
    os.close(master)
    for name in ("fd", "stdin", "stdout", "stderr", "ptmx"):
        os.stat(f"/dev/{name}") if name in ("fd", "ptmx") else os.lstat(f"/dev/{name}")


@neighbour()
def processes() -> None:
    """Threads, children, signals, tracing a child of our own, an executable page, shared memory."""
    import subprocess
    import threading

    thread = threading.Thread(target=time.sleep, args=(0,))
    thread.start()
    thread.join()
    if subprocess.run(["/bin/sh", "-c", "exit 7"], check=False).returncode != 7:
        wrong("exit status")
    child = os.fork()
    if child == 0:
        time.sleep(60)
    syscall(number(101, 117), 16, child, 0, 0)  # PTRACE_ATTACH
    os.waitpid(child, 0)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC).close()


@neighbour()
def own_process_files() -> None:
    """/proc/self can be written where a process may."""
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("500")
    with open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write("other")
    if any(name.isdigit() and int(name) > 1 << 21 for name in os.listdir("/proc")):
        wrong("foreign processes")


@neighbour()
def no_rights() -> None:
    """No capability in any set, no_new_privs, one filter."""
    with open("/proc/self/status", encoding="ascii") as file:
        fields = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        if int(fields[name], 16):
            wrong(f"{name} {fields[name]}")
    if (fields["NoNewPrivs"], fields["Seccomp"]) != ("1", "2"):
        wrong(f"{fields['NoNewPrivs']} {fields['Seccomp']}")


@neighbour()
def look_ups_fail_fast() -> None:
    """A name look-up does not hang where there is no resolver (B88)."""
    started = time.monotonic()
    with contextlib.suppress(OSError):
        socket.gethostbyname("name.test")
    if HELD["hold"] != OPEN and time.monotonic() - started > 3:
        wrong("too slow")
