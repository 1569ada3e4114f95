"""Processes of the machine: its tasks' neighbours, whoever set this one up, and what would outlive the task."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import struct
import time

from tidegate.doctor.escapes.needs import paths
from tidegate.doctor.escapes.table import ALL, FENCED, HELD, HOMED, PASSED, escape
from tidegate.doctor.escapes.tools import none_of, number, syscall, unix, word, wrong


def _pid() -> int:
    pid: int = HELD["outer_pid"]
    return pid


@escape("ENOENT")
def files_of_an_outer_process() -> None:
    """/proc has no process but the task's own."""
    for name in ("mem", "environ", "root/etc/passwd", "ns/net", "fd/0"):
        os.close(os.open(f"/proc/{_pid()}/{name}", os.O_RDONLY))


@escape("ESRCH")
def tracing_an_outer_process() -> None:
    """Ptrace of one."""
    syscall(number(101, 117), 0x4206, _pid(), 0, 0)  # PTRACE_SEIZE


@escape("ESRCH")
def reading_an_outer_process() -> None:
    """process_vm_readv from one."""
    kept = ctypes.create_string_buffer(16)
    here = struct.pack("QQ", ctypes.addressof(kept), 16)
    syscall(number(310, 270), _pid(), here, 1, here, 1, 0)


@escape("ESRCH")
def descriptors_of_an_outer_process() -> None:
    """pidfd_open and pidfd_getfd of one."""
    syscall(438, syscall(434, _pid(), 0), 0, 0)


@escape("ESRCH")
def signalling_an_outer_process() -> None:
    """A signal to one; 0 only asks whether it could be sent."""
    os.kill(_pid(), 0)


@escape("ENOENT", "EPERM", "EACCES")
def entering_an_outer_process() -> None:
    """Setns to any process: whatever number it tries, a task finds its own and no namespace of others to enter."""
    mine = {os.readlink(f"/proc/self/ns/{kind}") for kind in ("net", "mnt", "pid")}
    for pid in (*range(1, 400), _pid()):
        try:
            descriptor = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
        except OSError:
            continue
        if os.readlink(f"/proc/self/fd/{descriptor}") not in mine:
            syscall(number(308, 268), descriptor, 0)
            wrong(f"in the network of {pid}")
    raise FileNotFoundError(2, "none")


@escape("ENOENT", holds=FENCED)
def another_tasks_gate() -> None:
    """The gate of another task is in that one's network, and nothing leads there."""
    descriptor = os.open(f"/proc/{HELD['other_pid']}/ns/net", os.O_RDONLY)
    syscall(number(308, 268), descriptor, 0)
    with socket.create_connection(("127.0.0.1", HELD["port"]), 1) as wire:
        wire.sendall(word().encode())


def _outlive() -> None:
    """Leave a process behind that goes on writing for a while, wherever it can."""
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    for one in range(1, signal.NSIG):
        if one not in (signal.SIGKILL, signal.SIGSTOP, 32, 33):
            signal.signal(one, signal.SIG_IGN)
    os.closerange(0, 64)
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with open(HELD["survivor"], "w", encoding="ascii") as file:
            file.write(f"{word()} {time.monotonic()}")
        time.sleep(0.02)
    os._exit(0)


@escape(PASSED)
def surviving_the_end_of_the_task() -> None:
    """A double fork, a session of its own and every signal ignored: it ends with the task all the same."""
    _outlive()


@escape("ENOENT", "ECONNREFUSED", "EACCES", holds=ALL)
def a_unit_of_systemd() -> None:
    """What systemd-run would ask: the system's manager, the user's, and D-Bus."""
    runtime = os.environ["XDG_RUNTIME_DIR"]
    paths = ("/run/systemd/private", "/run/dbus/system_bus_socket", "/var/run/dbus/system_bus_socket")
    users = (f"{runtime}/systemd/private", f"{runtime}/bus", f"/run/user/{os.getuid()}/bus")
    raise none_of(unix, (*paths, *users), "answers")


def _spool(path: str) -> None:
    name = f"{path}/tidegate-canary"
    os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    os.unlink(name)


_CRON = ("/etc/cron.d", "/var/spool/cron", "/var/spool/cron/crontabs")
_AT = ("/var/spool/at", "/var/spool/cron/atjobs", "/var/spool/atjobs")


@escape("EACCES", "ENOENT", "EPERM", "EROFS", who="ordinary", needs=paths(*_CRON))
def a_job_of_cron() -> None:
    """Cron's tables: what writes them for users is a set-group-id program, which is none inside."""
    raise none_of(_spool, _CRON, "can be written")


@escape("EACCES", "ENOENT", "EPERM", "EROFS", who="ordinary", needs=paths(*_AT))
def a_job_of_at() -> None:
    """At's spool likewise."""
    raise none_of(_spool, _AT, "can be written")


@escape("EPERM", holds=HOMED)
def a_set_user_id_helper() -> None:
    """A program of another user's with the set-user-id bit runs as nobody but us."""
    import subprocess

    helper = HELD["helper"]
    done = subprocess.run([helper, "/proc/self/status"], capture_output=True, text=True, check=True)
    fields = dict(line.split(":", 1) for line in done.stdout.splitlines() if ":" in line)
    if len(set(fields["Uid"].split())) != 1 or len(set(fields["Gid"].split())) != 1:
        wrong(f"it runs as {fields['Uid']}")
    if not os.statvfs(helper).f_flag & os.ST_NOSUID:
        wrong("its file system lets it")
    raise PermissionError(1, "it gives nothing")
