"""What a task gets as standard input, output and error (HLD-13), decided before anything is forked.

Rules of the file:

* Regular files, pipes, `/dev/null` and its harmless kin (zero, full, random) are inherited as they are: no byte of
  theirs is copied. They lead nowhere else. But a file can be opened again by its descriptor, for writing too and
  past every mount of the hold: so the kernel's own files, read-only inside, come through a pipe.
* A terminal is never inherited, because with its descriptor come its modes, its window and whatever else runs on
  it. The task gets a pty of its own, made inside its own devpts by init; the front moves the bytes.
* Everything else (sockets above all, but directories, block devices, epoll sets too) is a way around the gate or out of
  the mount namespace, so the task gets a pipe and the front moves the bytes.
* A closed descriptor is opened on /dev/null, so that no file of ours ever lands on 0, 1 or 2.

It looks at descriptors and opens pipes; it moves no bytes (runtime/relay.py) and sets no modes (runtime/terminal.py).
`termios` is imported only where there is a terminal. See pipe(7), pty(7), null(4).
"""

from __future__ import annotations

import errno
import os
import stat
import sys

from tidegate.model.closed import Closed
from tidegate.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Devices of major 1 (Documentation/admin-guide/devices.txt) that carry nothing anywhere: null, zero, full, random,
# urandom.
HARMLESS_DEVICES = frozenset(os.makedev(1, minor) for minor in (3, 5, 7, 8, 9))
TIOCGDEV = 0x80045432  # asm-generic/ioctls.h: "get primary device node of /dev/console", and of /dev/tty


class Treatment(Closed):
    """What happens to one standard descriptor on the task's side."""

    INHERIT = "inherit"
    PIPE = "pipe"
    PTY = "pty"


class Relay(Value):
    """One pipe between the front and the task. `inward` bytes flow from `outside` to the task."""

    outside: int
    pipe: int
    inward: bool


class TerminalState(Value):
    """The real terminal as it was when the task began.

    `fd` is a descriptor of the front alone, non-blocking where the terminal could be opened again (`own`).
    `attributes` is what tcgetattr gave, `size` the eight bytes of struct winsize. `foreground` says whether the front
    may read from it; `full` whether all of 0, 1 and 2 are this terminal.
    """

    fd: int
    own: bool
    attributes: list[Any]
    size: bytes
    foreground: bool
    full: bool


class StdioPlan(Value):
    """The whole plan. `task_fds` holds what becomes 0, 1 and 2 of the command; -1 where that is the pty."""

    treatments: tuple[Treatment, Treatment, Treatment]
    task_fds: tuple[int, int, int]
    relays: tuple[Relay, ...] = ()
    terminal: TerminalState | None = None

    @property
    def wants_pty(self) -> bool:
        """Whether init makes a pty."""
        return self.terminal is not None

    @property
    def starts_in_foreground(self) -> bool:
        """Whether the command begins as the foreground of its pty; else it runs in its background until it needs it."""
        return self.terminal is not None and self.terminal.full and self.terminal.foreground

    def keep(self) -> tuple[int, ...]:
        """Return the descriptors that must stay open, under the same numbers, until init forks the command."""
        return tuple(sorted({fd for fd in self.task_fds if fd >= 0}))


def plan_stdio() -> StdioPlan:
    """Look at descriptors 0 to 2 of this process and return what the task gets instead.

    Raises:
        OSError: only when the machine is out of descriptors.
    """
    states = [_state_or_null(fd) for fd in range(3)]
    treatments = [_treatment(fd, state) for fd, state in enumerate(states)]
    terminal = None
    if Treatment.PTY in treatments:
        first = treatments.index(Treatment.PTY)
        # A second, different terminal is rare (`2>/dev/pts/7`); the task has one pty, so that one goes through a pipe.
        for fd in range(3):
            if treatments[fd] is Treatment.PTY and states[fd].st_rdev != states[first].st_rdev:
                treatments[fd] = Treatment.PIPE
        terminal = _terminal(first, full=treatments == [Treatment.PTY] * 3)
    task_fds: list[int] = []
    relays: list[Relay] = []
    shared: dict[tuple[int, int], int] = {}
    for fd, (treatment, state) in enumerate(zip(treatments, states, strict=True)):
        if treatment is Treatment.INHERIT:
            task_fds.append(fd)
        elif treatment is Treatment.PTY:
            task_fds.append(-1)
        elif fd > 0 and (state.st_dev, state.st_ino) in shared:
            # Output and error on one socket share one pipe, so that their order is kept.
            task_fds.append(shared[state.st_dev, state.st_ino])
        else:
            reading, writing = os.pipe()
            mine, theirs = (writing, reading) if fd == 0 else (reading, writing)
            os.set_blocking(mine, False)
            task_fds.append(theirs)
            relays.append(Relay(fd, mine, fd == 0))
            if fd > 0:
                shared[state.st_dev, state.st_ino] = theirs
    return StdioPlan(
        (treatments[0], treatments[1], treatments[2]), (task_fds[0], task_fds[1], task_fds[2]), tuple(relays), terminal
    )


def close_task_ends(plan: StdioPlan) -> None:
    """Close the task's ends of the pipes in the front, once init has them; without it no end of file is ever seen."""
    for fd in plan.keep():
        if fd > 2:
            _close(fd)


def need_terminal(plan: StdioPlan) -> None:
    """Make sure that there is a terminal to ask in, and that nothing but the front writes to it meanwhile.

    Raises:
        StartError: where there is none, or where the command's output goes to another program, which could write it to
            the terminal and so over the question.
    """
    from tidegate.model.errors import StartError

    if plan.terminal is None:
        raise StartError(
            "--ask: there is no terminal to ask in",
            fix="run it in a terminal, or leave --ask out: what needs approval is refused at once then",
            code="no-terminal",
        )
    for fd, name in ((1, "output"), (2, "error")):
        piped = plan.treatments[fd] is Treatment.INHERIT and stat.S_ISFIFO(os.fstat(fd).st_mode)
        if piped or plan.treatments[fd] is Treatment.PIPE:
            raise StartError(
                f"--ask: standard {name} goes to another program, which could write over the question",
                fix="write to a file, or leave --ask out",
                code="no-terminal",
            )


def let_go_of_pipes(plan: StdioPlan) -> None:
    """Let go of inherited pipes as our own input and output, once the task has its copies.

    Ours would keep a pipeline waiting for the end of what the command has closed.
    """
    for fd in (0, 1):
        if plan.treatments[fd] is Treatment.INHERIT and stat.S_ISFIFO(os.fstat(fd).st_mode):
            null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
            os.dup2(null, fd)
            os.close(null)


def treatment_of(mode: int, device: int, *, terminal: bool) -> Treatment:
    """Return what a descriptor with this st_mode and st_rdev gets; `terminal` is what isatty says of it."""
    if terminal:
        return Treatment.PTY
    if stat.S_ISREG(mode) or stat.S_ISFIFO(mode):
        return Treatment.INHERIT
    if stat.S_ISCHR(mode) and device in HARMLESS_DEVICES:
        return Treatment.INHERIT
    return Treatment.PIPE


def _treatment(fd: int, state: os.stat_result) -> Treatment:
    terminal = stat.S_ISCHR(state.st_mode) and os.isatty(fd)
    if stat.S_ISREG(state.st_mode) and _is_the_kernels(fd):
        return Treatment.PIPE
    return treatment_of(state.st_mode, state.st_rdev, terminal=terminal)


def _is_the_kernels(fd: int) -> bool:
    """Whether a regular file is one of /proc or /sys, or of a file system without names (a namespace: `net:[...]`)."""
    try:
        name = os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return True  # nothing is known of it
    return not name.startswith("/") or name.startswith(("/proc/", "/sys/"))


def _state_or_null(fd: int) -> os.stat_result:
    try:
        return os.fstat(fd)
    except OSError as error:
        if error.errno != errno.EBADF:
            raise
    null = os.open("/dev/null", os.O_RDWR)
    if null != fd:
        os.dup2(null, fd)
        os.close(null)
    return os.fstat(fd)


def _terminal(fd: int, *, full: bool) -> TerminalState:
    import termios
    from fcntl import ioctl

    attributes = termios.tcgetattr(fd)
    try:
        size = ioctl(fd, termios.TIOCGWINSZ, bytes(8))
    except OSError:
        size = bytes(8)
    try:
        foreground = os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:
        foreground = (
            True  # not our controlling terminal: whoever has the descriptor may read, and no job control exists
        )
    own = _open_again(fd)
    if own < 0:
        return TerminalState(fd, False, attributes, size, foreground, full)
    return TerminalState(own, True, attributes, size, foreground, full)


def _open_again(fd: int) -> int:
    # A description of our own: O_NONBLOCK on the inherited one would be seen by the shell and by everyone who shares
    # it. By name it may be someone else's (after su) or not there (a container's console); /dev/tty is ours where it
    # is the same.
    device = os.fstat(fd).st_rdev
    for path in (_name(fd), "/dev/tty"):
        try:
            own = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue
        if device in {os.fstat(own).st_rdev, _device_behind(own)}:
            return own
        os.close(own)
    return -1


def _name(fd: int) -> str:
    try:
        return os.ttyname(fd)
    except OSError:
        return ""


def _device_behind(fd: int) -> int:
    """Return the device that /dev/tty stands for, in the form of st_rdev; -1 where the kernel does not say."""
    from fcntl import ioctl

    try:
        encoded = int.from_bytes(ioctl(fd, TIOCGDEV, bytes(4)), sys.byteorder)
    except OSError:
        return -1
    return os.makedev((encoded >> 8) & 0xFFF, (encoded & 0xFF) | ((encoded >> 12) & 0xFFF00))  # new_decode_dev()


def _close(fd: int) -> None:
    try:
        os.close(fd)
    except OSError as error:
        if error.errno != errno.EBADF:
            raise
