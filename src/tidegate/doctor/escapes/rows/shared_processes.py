"""The machine's processes beside those of a task without namespaces: none can be changed, ended or looked into."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import signal
import socket
import struct
from functools import partial
from typing import TYPE_CHECKING

from tidegate.doctor.escapes.table import HELD, LANDLOCK, escape, neighbour
from tidegate.doctor.escapes.tools import all_refused, number, syscall, wrong

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = (LANDLOCK,)


def _parent(pid: int) -> int:
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("PPid:"))


def _of_ours() -> list[int]:
    """Who keeps this hold: its init, the watcher, the front, and the process outside that set the trial up."""
    init = _parent(os.getppid())
    front = _parent(init)
    found = [init, front, HELD["outer_pid"]]
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if _parent(int(name)) == front and int(name) not in found:
                    found.append(int(name))  # the watcher and the gate
            except (OSError, StopIteration):
                continue
    return found


@escape("EPERM", holds=HERE)
def signals_to_who_holds() -> None:
    """To init, the watcher and whoever is outside: by kill, tgkill and a pidfd, ending, stopping and asking."""
    attempts: list[Callable[[], object]] = []
    for pid in _of_ours():
        for one in (signal.SIGKILL, signal.SIGSTOP, 0):
            attempts += (
                partial(os.kill, pid, one),
                partial(syscall, number(234, 131), pid, pid, one),
                partial(signal.pidfd_send_signal, os.pidfd_open(pid), one),
            )
    all_refused(attempts, errno.EPERM, "signalled")


@escape("EPERM", holds=HERE)
def signals_by_way_of_a_file() -> None:
    """fcntl(F_SETOWN) has the kernel signal somebody when a pipe can be read: not who is outside."""
    reading, writing = os.pipe()
    fcntl.fcntl(reading, fcntl.F_SETOWN, HELD["outer_pid"])
    fcntl.fcntl(reading, 10, signal.SIGKILL)  # F_SETSIG
    fcntl.fcntl(reading, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    os.write(writing, b"x")
    if not os.path.exists(f"/proc/{HELD['outer_pid']}"):
        wrong("it was ended")
    os.kill(HELD["outer_pid"], 0)


@escape("EACCES", holds=HERE)
def looking_into_who_holds() -> None:
    """Memory, environment, descriptors and root of init, the watcher and whoever is outside, by their files."""
    for pid in _of_ours():
        for name in ("mem", "environ", "maps", "auxv", "fd/0", "root/etc/passwd", "cwd/x", "syscall", "stack"):
            try:
                with open(f"/proc/{pid}/{name}", "rb") as file:
                    file.read(1)
            except OSError as error:
                if error.errno in (errno.EACCES, errno.EPERM):
                    last = error
                    continue
                raise
            wrong(f"/proc/{pid}/{name} can be read")
    raise PermissionError(errno.EACCES, str(last))


@escape("EPERM", holds=HERE)
def tracing_who_holds() -> None:
    """Ptrace, reading and writing memory, and taking descriptors: the gate's sockets, the watcher's listener."""
    kept = ctypes.create_string_buffer(16)
    here = struct.pack("QQ", ctypes.addressof(kept), 16)
    attempts: list[Callable[[], object]] = []
    for pid in _of_ours():
        attempts += (
            partial(syscall, number(101, 117), 0x4206, pid, 0, 0),  # PTRACE_SEIZE
            partial(syscall, number(101, 117), 16, pid, 0, 0),  # PTRACE_ATTACH
            partial(syscall, number(310, 270), pid, here, 1, here, 1, 0),
            partial(syscall, number(311, 271), pid, here, 1, here, 1, 0),
            partial(syscall, 438, os.pidfd_open(pid), 3, 0),
            partial(syscall, number(312, 272), os.getpid(), pid, 0, 0, 0),  # kcmp
        )
    all_refused(attempts, errno.EPERM, "traced")


@escape("EPERM", holds=HERE)
def slowing_who_holds_down() -> None:
    """Limits, priority, processors and scheduling of processes that are not the task's."""
    high = struct.pack("QQ", 1 << 40, 1 << 40)
    attempts: list[Callable[[], object]] = []
    for pid in _of_ours():
        attempts += (
            partial(syscall, number(302, 261), pid, 2, high, 0),  # prlimit64, RLIMIT_DATA
            partial(os.setpriority, os.PRIO_PROCESS, pid, 19),
            lambda: os.setpriority(os.PRIO_USER, os.getuid(), 19),
            partial(os.sched_setaffinity, pid, {0}),
            partial(os.sched_setscheduler, pid, os.SCHED_IDLE, os.sched_param(0)),
            partial(syscall, number(251, 30), 1, pid, 3 << 13),  # ioprio_set, idle
        )
    all_refused(attempts, errno.EPERM, "slower")


@escape("EACCES", holds=HERE)
def settings_of_other_processes() -> None:
    """Files of /proc that can be written for a process of the same user."""
    for pid in _of_ours():
        for name in ("oom_score_adj", "coredump_filter", "clear_refs", "comm", "autogroup", "timerslack_ns"):
            try:
                os.close(os.open(f"/proc/{pid}/{name}", os.O_WRONLY))
            except OSError as error:
                if error.errno in (errno.EACCES, errno.ENOENT):
                    continue
                raise
            wrong(f"/proc/{pid}/{name} can be written")
    raise PermissionError(errno.EACCES, "none")


@escape("EPERM", holds=HERE)
def a_namespace_of_our_own() -> None:
    """With one come capabilities, and files that are mounted."""
    for flag in (0x10000000, 0x00020000, 0x40000000, 0x20000000, 0x08000000, 0x04000000, 0x02000000):
        try:
            syscall(number(272, 97), flag)
        except PermissionError as error:
            last = error
            continue
        wrong(f"namespace {flag:#x}")
    raise last


@escape("ENOSYS", holds=HERE)
def memory_shared_by_system_v() -> None:
    """Segments, semaphores and queues have no owner but the user: other programs' of the same one."""
    for call, arguments in (
        ((29, 194), (0, 0, 0o600)),  # of no size: nothing would be left
        ((30, 196), (0, 0, 0o10000)),
        ((64, 190), (0, 1, 0o600)),
        ((68, 186), (0, 0o600)),
        ((240, 180), (b"/tidegate-none\0", 0)),
    ):
        try:
            syscall(number(*call), *arguments)
        except OSError as error:
            if error.errno == errno.ENOSYS:
                last = error
                continue
            raise
        wrong(f"call {call[0]}")
    raise last


@escape("EPERM", holds=HERE)
def ending_who_answers_by_path() -> None:
    """The peer of a connection is the watcher, by its process: nothing can be done to it."""
    path = f"{os.environ['TMPDIR']}/peer"
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(path)
        server.listen()
        client.connect(path)
        (pid,) = struct.unpack_from("i", server.accept()[0].getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    process = os.pidfd_open(pid)
    for taken in range(8):
        try:
            syscall(438, process, taken, 0)
        except PermissionError:
            continue
        wrong("a descriptor of the watcher")
    signal.pidfd_send_signal(process, signal.SIGKILL)


@escape("EPERM", holds=HERE)
def a_set_user_id_program() -> None:
    """A program of another user's with the set-user-id bit runs as nobody but us."""
    import subprocess

    done = subprocess.run([HELD["helper"], "/proc/self/status"], capture_output=True, text=True, check=True)
    fields = dict(line.split(":", 1) for line in done.stdout.splitlines() if ":" in line)
    if len(set(fields["Uid"].split())) != 1 or len(set(fields["Gid"].split())) != 1:
        wrong(f"it runs as {fields['Uid']}")
    raise PermissionError(1, "it gives nothing")


@neighbour(holds=HERE)
def limits_of_its_own_processes() -> None:
    """A process may lower its own limits, by whatever number it names itself, and nobody's else."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
    if resource.prlimit(os.getpid(), resource.RLIMIT_NOFILE, (100, hard))[0] != min(soft, 256):
        wrong("what it was")
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] != 100:
        wrong("what it is")


@neighbour(holds=HERE)
def no_rights_to_gain() -> None:
    """No capability in any set that counts, no_new_privs, one filter."""
    with open("/proc/self/status", encoding="ascii") as file:
        fields = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        if int(fields[name], 16):
            wrong(f"{name} {fields[name]}")
    if (fields["NoNewPrivs"], fields["Seccomp"], fields["CapBnd"].strip("0") == "" or os.getuid() != 0) != (
        "1",
        "2",
        True,
    ):
        wrong(f"{fields['NoNewPrivs']} {fields['Seccomp']} {fields['CapBnd']}")
