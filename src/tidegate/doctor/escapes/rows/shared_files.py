"""The machine's files, which a task without namespaces shares: what is protected is refused in every way (HLD-15)."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import socket
import struct
from functools import partial
from typing import TYPE_CHECKING

from tidegate.doctor.escapes.table import HELD, LANDLOCK, escape, neighbour
from tidegate.doctor.escapes.tools import number, race, syscall, unix, wrong

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = (LANDLOCK,)


@escape("EACCES", holds=HERE)
def the_machines_tmp() -> None:
    """/tmp, /run and /dev/shm are the machine's: neither listed, read nor written."""
    for folder in ("/tmp", "/run", "/dev/shm"):
        for attempt in (
            partial(os.listdir, folder),
            partial(os.open, f"{folder}/tidegate-none", os.O_CREAT | os.O_WRONLY),
            partial(os.mkdir, f"{folder}/tidegate-none"),
        ):
            try:
                attempt()
            except PermissionError as error:
                last = error
                continue
            wrong(folder)
    raise last


@escape("EACCES", holds=HERE)
def other_terminals() -> None:
    """Every terminal there is, of this user or another, by its name: none opens."""
    found = False
    for name in (*os.listdir("/sys/class/tty"), *(f"pts/{count}" for count in range(64))):
        path = f"/dev/{name}"
        if name in ("tty", "ptmx") or not os.path.exists(path):
            continue
        found = True
        for flags in (os.O_RDONLY, os.O_RDWR):
            try:
                os.close(os.open(path, flags | os.O_NOCTTY | os.O_NONBLOCK))
            except PermissionError:
                continue
            wrong(path)
    raise PermissionError(errno.EACCES, "none" if found else "there is none")


@escape("EACCES", holds=HERE)
def executing_from_memory() -> None:
    """A program in memory (memfd) has no more rights than the one that wrote it."""
    made = os.memfd_create("x", 0)
    with open("/bin/cat", "rb") as program:
        os.write(made, program.read())
    child = os.fork()
    if child == 0:
        null = os.open("/dev/null", os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os.execv(f"/proc/self/fd/{made}", ["cat", HELD["hidden"] + "/secret"])
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
        wrong("it was read")
    os.close(os.open(HELD["hidden"] + "/secret", os.O_RDONLY))


@escape("EXDEV", "EACCES", "ENOENT", "EPERM", holds=HERE)
def a_link_by_a_descriptor() -> None:
    """A read-only file opened without a right to it (O_PATH), and linked to where the task writes."""
    held = os.open(HELD["readonly"] + "/code.py", os.O_PATH)
    target = HELD["workspace"] + f"/linked-{os.getpid()}"
    try:
        syscall(number(265, 37), held, b"\0", -100, os.fsencode(target) + b"\0", 0x1000)  # AT_EMPTY_PATH
    except OSError:
        os.link(f"/proc/self/fd/{held}", target, follow_symlinks=True)


@escape("EACCES", holds=HERE)
def writing_by_an_odd_descriptor() -> None:
    """A read-only file opened to be read or not at all, and again through /proc; cut by its path; mapped to write."""
    path = HELD["readonly"] + "/code.py"
    for flags in (os.O_RDONLY, os.O_PATH):
        held = os.open(path, flags)
        for again in (f"/proc/self/fd/{held}", f"/dev/fd/{held}", f"/proc/{os.getpid()}/fd/{held}"):
            for wanted in (os.O_WRONLY, os.O_RDWR | os.O_TRUNC, os.O_WRONLY | os.O_APPEND):
                try:
                    os.close(os.open(again, wanted))
                except PermissionError:
                    continue
                wrong(again)
    held = os.open(path, os.O_RDONLY)
    try:
        mmap.mmap(held, 1, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    except PermissionError:
        os.truncate(path, 0)
    wrong("mapped")


@escape("EACCES", holds=HERE)
def changing_what_is_protected_by_a_descriptor() -> None:
    """Modes, owners, times and attributes of a file that was opened to be read."""
    held = os.open(HELD["readonly"] + "/code.py", os.O_RDONLY)
    attempts: tuple[Callable[[], object], ...] = (
        lambda: os.fchmod(held, 0o777),
        lambda: os.fchown(held, -1, -1),
        lambda: os.utime(held, (1, 1)),
        lambda: os.setxattr(held, "user.tidegate", b"x"),
        lambda: os.utime(HELD["readonly"], (1, 1)),
        lambda: os.chmod(HELD["hidden"], 0o777),
    )
    for attempt in attempts:
        try:
            attempt()
        except PermissionError as error:
            last = error
            continue
        wrong("it was changed")
    raise last


@escape("EPERM", holds=HERE)
def flags_of_a_file() -> None:
    """Making a file immutable, or verified, needs only that it is one's own."""
    held = os.open(HELD["workspace"] + "/package.json", os.O_RDONLY)
    fcntl.ioctl(held, 0x40086602, struct.pack("l", 0x40))  # FS_IOC_SETFLAGS, FS_NODUMP_FL


@escape("EACCES", holds=HERE)
def exchanging_the_folder_while_it_is_judged() -> None:
    """A thread exchanges a folder of the task's with a link to a protected one while a file is made there."""
    work = HELD["workspace"]
    for name in ("flip", "flop"):
        if os.path.islink(f"{work}/{name}"):
            os.unlink(f"{work}/{name}")
    os.makedirs(f"{work}/flip", exist_ok=True)
    os.symlink(HELD["readonly"], f"{work}/flop")
    pair = (-100, os.fsencode(f"{work}/flip") + b"\0", -100, os.fsencode(f"{work}/flop") + b"\0", 2)

    def attempt(_fd: int) -> int:
        try:
            os.close(os.open(f"{work}/flip/raced", os.O_CREAT | os.O_WRONLY))
        except OSError:
            return 1
        return 1

    race(lambda: syscall(number(316, 276), *pair), lambda: None, attempt)
    if os.path.lexists(HELD["readonly"] + "/raced"):
        wrong("it was made in the protected folder")
    os.close(os.open(HELD["readonly"] + "/raced", os.O_CREAT | os.O_WRONLY))


@escape("ECONNREFUSED", holds=HERE)
def a_machines_socket_by_a_link_in_the_workspace() -> None:
    """By a symlink and by a hard link, where a socket of the task's own was before."""
    own = HELD["workspace"] + f"/own-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(own)
        server.listen()
        unix(own)
        for put in (os.symlink, os.link):
            os.unlink(own)
            put(HELD["late_work"], own)
            try:
                unix(own)
            except ConnectionRefusedError as error:
                last = error
                continue
            wrong("reached")
    os.unlink(own)
    raise last


@neighbour(holds=HERE)
def folders_of_its_own() -> None:
    """The workspace, TMPDIR and the runtime folder can be written, privately; a temporary file is the task's own."""
    import tempfile

    for folder in (HELD["workspace"], os.environ["TMPDIR"], os.environ["XDG_RUNTIME_DIR"], tempfile.gettempdir()):
        with open(folder + "/probe", "w", encoding="ascii") as file:
            file.write("mine")
        os.rename(folder + "/probe", folder + "/probe2")
        os.unlink(folder + "/probe2")
    if os.stat(os.environ["XDG_RUNTIME_DIR"]).st_mode & 0o777 != 0o700:
        wrong("the runtime folder is open to others")


@neighbour(holds=HERE)
def changing_files_in_every_manner() -> None:
    """In a workspace in which something is protected, all that tools do to files and names beside it."""
    work = HELD["workspace"] + f"/all-{os.getpid()}"
    os.makedirs(work + "/deep/deeper")
    with open(work + "/a", "w+", encoding="ascii") as file:
        file.write("text")
        file.truncate(2)
        os.fchmod(file.fileno(), 0o640)
        os.utime(file.fileno(), (1, 1))
    os.chmod(work + "/a", 0o600)
    os.utime(work + "/a", (2, 2))
    os.link(work + "/a", work + "/b")
    os.symlink("a", work + "/c")
    with open(work + "/c", encoding="ascii") as file:
        if file.read() != "te":
            wrong("its text")
    with open(work + "/c", "a", encoding="ascii") as file:
        file.write("xt")
    os.truncate(work + "/b", 3)
    os.rename(work + "/b", work + "/deep/b")
    os.replace(work + "/deep/b", work + "/a")
    os.mkfifo(work + "/pipe")
    os.chown(work + "/a", -1, -1)
    made = os.open(work, os.O_TMPFILE | os.O_RDWR, 0o600)
    os.write(made, b"x")
    for name in ("a", "c", "pipe"):
        os.unlink(f"{work}/{name}")
    os.removedirs(work + "/deep/deeper")
