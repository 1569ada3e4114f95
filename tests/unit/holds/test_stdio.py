"""What a task gets as standard streams (HLD-13)."""

from __future__ import annotations

import os
import stat
import subprocess
import sys

import pytest

import tidegate
from tidegate.holds.stdio import Treatment, treatment_of

NULL, ZERO, TTY, MEM, LOOP = (os.makedev(*numbers) for numbers in ((1, 3), (1, 5), (4, 64), (1, 1), (7, 0)))


@pytest.mark.parametrize(
    ("kind", "device", "terminal", "expected"),
    [
        (stat.S_IFREG, 0, False, Treatment.INHERIT),
        (stat.S_IFIFO, 0, False, Treatment.INHERIT),
        (stat.S_IFCHR, NULL, False, Treatment.INHERIT),
        (stat.S_IFCHR, ZERO, False, Treatment.INHERIT),
        (stat.S_IFCHR, os.makedev(1, 9), False, Treatment.INHERIT),
        (stat.S_IFCHR, MEM, False, Treatment.PIPE),
        (stat.S_IFCHR, os.makedev(1, 11), False, Treatment.PIPE),  # /dev/kmsg
        (stat.S_IFCHR, os.makedev(10, 200), False, Treatment.PIPE),  # /dev/net/tun
        (stat.S_IFCHR, TTY, True, Treatment.PTY),
        (stat.S_IFSOCK, 0, False, Treatment.PIPE),
        (stat.S_IFBLK, LOOP, False, Treatment.PIPE),
        (stat.S_IFBLK, NULL, False, Treatment.PIPE),  # the numbers of null, on a block device
        (stat.S_IFDIR, 0, False, Treatment.PIPE),
        (0, 0, False, Treatment.PIPE),  # epoll, eventfd and their like have no type at all
    ],
)
def test_what_leads_nowhere_is_inherited_and_nothing_else(
    kind: int, device: int, terminal: bool, expected: Treatment
) -> None:
    """HLD-13: files, pipes and harmless devices pass; a terminal becomes a pty; all else becomes a pipe."""
    assert treatment_of(kind | 0o600, device, terminal=terminal) is expected


HEAD = """
import os, socket, stat, sys
sys.path.insert(0, os.environ["SOURCE"])
from tidegate.holds.stdio import Treatment, plan_stdio, close_task_ends
out = os.dup(1)
def say(*what): os.write(out, (' '.join(map(str, what)) + '\\n').encode())
"""


def plan(script: str) -> str:
    """Run a script with plan_stdio at hand, in a process of its own, and return what it said."""
    done = subprocess.run(
        [sys.executable, "-c", HEAD + script],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "SOURCE": os.path.dirname(os.path.dirname(tidegate.__file__))},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_plain_streams_need_nothing() -> None:
    """HLD-13: null and pipes: three descriptors to keep, no relay, no terminal, no termios."""
    script = (
        "p = plan_stdio()\nsay([t.value for t in p.treatments], p.task_fds, p.relays, p.terminal, p.keep())\n"
        "say(p.wants_pty, p.starts_in_foreground, 'termios' in sys.modules)"
    )
    assert plan(script) == "['inherit', 'inherit', 'inherit'] (0, 1, 2) () None (0, 1, 2)\nFalse False False\n"


def test_closed_streams_are_opened_on_null() -> None:
    """HLD-9: nothing of ours can land on 0, 1 or 2 later."""
    script = (
        "os.close(0); os.close(1); os.close(2)\np = plan_stdio()\n"
        "say([os.readlink(f'/proc/self/fd/{n}') for n in range(3)], p.task_fds)\n"
        "say(min(os.open('/', os.O_RDONLY), 3))"
    )
    assert plan(script) == "['/dev/null', '/dev/null', '/dev/null'] (0, 1, 2)\n3\n"


def test_sockets_become_pipes_and_output_and_error_share_one() -> None:
    """HLD-13: one pipe in, one out where 1 and 2 are the same socket; the task's ends close once passed on."""
    script = (
        "a, b = socket.socketpair()\nfor n in range(3): os.dup2(b.fileno(), n)\np = plan_stdio()\n"
        "say([t.value for t in p.treatments], p.task_fds[1] == p.task_fds[2], len(p.relays))\n"
        "def look(r): return r.outside, r.inward, stat.S_ISFIFO(os.fstat(r.pipe).st_mode), os.get_blocking(r.pipe)\n"
        "say([look(r) for r in p.relays])\n"
        "say([os.get_blocking(fd) for fd in p.keep()])\n"
        "os.write(p.task_fds[1], b'x'); say(os.read(p.relays[1].pipe, 9))\n"
        "close_task_ends(p); say(os.read(p.relays[1].pipe, 9)); close_task_ends(p)"
    )
    assert plan(script) == (
        "['pipe', 'pipe', 'pipe'] True 2\n[(0, True, True, False), (1, False, True, False)]\n[True, True]\nb'x'\nb''\n"
    )


def test_two_sockets_keep_two_pipes() -> None:
    """HLD-13: output and error that lead to different places are not mixed."""
    script = (
        "a, b = socket.socketpair(); c, d = socket.socketpair()\nos.dup2(b.fileno(), 1); os.dup2(d.fileno(), 2)\n"
        "p = plan_stdio()\nsay(p.task_fds[0], p.task_fds[1] != p.task_fds[2], len(p.relays))"
    )
    assert plan(script) == "0 True 2\n"


def test_a_folder_is_never_handed_on() -> None:
    """HLD-13: through a descriptor of a folder every path outside could be opened, so it becomes a pipe."""
    script = (
        "folder = os.open('/', os.O_RDONLY)\nfor n in range(3): os.dup2(folder, n)\np = plan_stdio()\n"
        "say([t.value for t in p.treatments], [stat.S_ISFIFO(os.fstat(fd).st_mode) for fd in p.keep()])"
    )
    assert plan(script).startswith("['pipe', 'pipe', 'pipe'] [True, True")


def test_a_terminal_is_replaced_and_described() -> None:
    """HLD-13: each stream on the terminal gets the pty; modes and size are taken; the front's descriptor is its own."""
    script = (
        "import fcntl, struct, termios\nmaster, slave = os.openpty()\n"
        "fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack('HHHH', 10, 20, 0, 0))\n"
        "os.dup2(slave, 0); os.dup2(slave, 2)\np = plan_stdio(); t = p.terminal\n"
        "say([t.value for t in p.treatments], p.task_fds, p.keep(), p.wants_pty, p.starts_in_foreground)\n"
        "say(t.attributes == termios.tcgetattr(slave), struct.unpack('HHHH', t.size), t.full, t.own, t.fd > 2)\n"
        "say(os.get_blocking(t.fd), os.get_blocking(0), os.get_inheritable(t.fd))\n"
        "os.dup2(slave, 1)\np = plan_stdio()\nsay(p.terminal.full, p.task_fds, p.keep())"
    )
    assert plan(script) == (
        "['pty', 'inherit', 'pty'] (-1, 1, -1) (1,) True False\nTrue (10, 20, 0, 0) False True True\nFalse True False\n"
        "True (-1, -1, -1) ()\n"
    )


def test_a_second_terminal_goes_through_a_pipe() -> None:
    """HLD-13: the task has one pty; output to another terminal is relayed there, not to the first."""
    script = (
        "master, slave = os.openpty(); other, far = os.openpty()\n"
        "os.dup2(slave, 0); os.dup2(slave, 1); os.dup2(far, 2)\n"
        "p = plan_stdio()\nsay([t.value for t in p.treatments], p.terminal.full, [r.outside for r in p.relays])"
    )
    assert plan(script) == "['pty', 'pty', 'pipe'] False [2]\n"


def test_the_kernels_files_come_through_a_pipe() -> None:
    """HLD-13: opened again by its descriptor, /proc/sys/... would be writable for root; a plain file is inherited."""
    script = (
        "for path in (%s):\n"
        "    file = os.open(path, os.O_RDONLY); os.dup2(file, 0); os.close(file)\n"
        "    say(plan_stdio().treatments[0].value)\n"
    )
    paths = '"/proc/sys/kernel/core_pattern", "/proc/self/ns/net", "/proc/self/stat", "/etc/passwd"'
    assert plan(script % paths) == "pipe\npipe\npipe\ninherit\n"
