"""Signals queued on a descriptor, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys

import tidegate

HEAD = """
import os, select, signal, sys
sys.path.insert(0, sys.argv[1])
from tidegate.runtime.signals import SignalInbox, from_keyboard, stop_by
def hit(number):
    os.kill(os.getpid(), number)
"""


def run(script: str) -> str:
    """Run a script in a fresh process and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", HEAD + script, os.path.dirname(os.path.dirname(tidegate.__file__))],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_signals_queue_in_order_and_make_the_descriptor_readable() -> None:
    """Each signal is there once, oldest first, and nothing interrupts or ends the process."""
    script = (
        "inbox = SignalInbox.install()\nprint(inbox.take(), select.select([inbox.fd], [], [], 0)[0])\n"
        "for name in 'USR1 INT TERM HUP QUIT TSTP WINCH ALRM'.split(): hit(getattr(signal, 'SIG' + name))\n"
        "print(bool(select.select([inbox.fd], [], [], 0)[0]), inbox.take(), inbox.take())"
    )
    assert run(script) == "[] []\nTrue [10, 2, 15, 1, 3, 20, 28, 14] []\n"


def test_the_first_end_that_was_taken_is_kept() -> None:
    """HLD-9: who asked for the end of a set-up command asked for the end of the run."""
    script = (
        "inbox = SignalInbox.install()\nhit(signal.SIGUSR1); inbox.take(); print(inbox.ended_by)\n"
        "hit(signal.SIGTERM); print(inbox.ended_by); inbox.take()\n"
        "hit(signal.SIGINT); inbox.take(); print(inbox.ended_by)"
    )
    assert run(script) == "0\n0\n15\n"


def test_a_waiting_end_is_seen_without_being_taken() -> None:
    """Launch code may look whether it should give up; the front still gets the signal."""
    script = (
        "inbox = SignalInbox.install()\nhit(signal.SIGUSR1)\nprint(inbox.pending_end())\nhit(signal.SIGTERM)\n"
        "hit(signal.SIGINT)\nprint(inbox.pending_end(), inbox.pending_end(), inbox.take())"
    )
    assert run(script) == "0\n15 15 [10, 15, 2]\n"


def test_what_was_ignored_stays_ignored_but_our_own_needs() -> None:
    """The SIGHUP of nohup is not ours to act on; SIGCHLD and SIGCONT are needed whatever they were."""
    script = (
        "for name in 'SIGHUP SIGCHLD SIGCONT'.split(): signal.signal(getattr(signal, name), signal.SIG_IGN)\n"
        "inbox = SignalInbox.install()\nhit(signal.SIGHUP); hit(signal.SIGCHLD); hit(signal.SIGCONT)\n"
        "print(inbox.take())"
    )
    assert run(script) == "[17, 18]\n"


def test_restoring_puts_everything_back() -> None:
    """After `restore` the handlers are what they were, and the descriptors are closed."""
    script = (
        "before = [signal.getsignal(n) for n in range(1, 32)]\nfds = os.listdir('/proc/self/fd')\n"
        "inbox = SignalInbox.install()\ninbox.restore()\n"
        "print(before == [signal.getsignal(n) for n in range(1, 32)], len(fds) == len(os.listdir('/proc/self/fd')))"
    )
    assert run(script) == "True True\n"


def test_stopping_waits_for_the_continue_and_an_orphan_is_not_stopped() -> None:
    """SIGSTOP stops and returns when continued; SIGTSTP in an orphaned group is discarded and returns at once."""
    script = (
        "inbox = SignalInbox.install()\nparent = os.getpid()\n"
        "stop_by(signal.SIGTSTP, group=False)\nprint(18 in inbox.take(), flush=True)\n"
        "if os.fork() == 0:\n"
        "    import time\n"
        "    while open(f'/proc/{parent}/stat').read().rpartition(')')[2].split()[0] != 'T': time.sleep(0.01)\n"
        "    os.kill(parent, signal.SIGCONT)\n"
        "    os._exit(0)\n"
        "stop_by(signal.SIGSTOP, group=False)\nprint(18 in inbox.take())\n"
        "print(callable(signal.getsignal(signal.SIGTSTP)))"
    )
    assert run(script) == "False\nTrue\nTrue\n"


def test_without_a_controlling_terminal_no_signal_is_from_a_keyboard() -> None:
    """A SIGINT from a supervisor is not taken for Ctrl-C."""
    assert run("print(from_keyboard())") == "False\n"


def test_what_is_waited_for_is_interrupted_where_that_is_heeded() -> None:
    """HLD-9, INS-5: by what asks us to end, also when it came before, and only then; it stays queued."""
    script = (
        "inbox = SignalInbox.install()\nreading, writing = os.pipe()\n"
        "def wait(at_once, *numbers):\n"
        "    try:\n"
        "        inbox.heed(at_once=at_once)\n"
        "        for number in numbers: hit(number)\n"
        "        inbox.heed(at_once=False)\n"
        "        print('went on', inbox.take())\n"
        "    except KeyboardInterrupt as asked: print(type(asked).__name__, asked.number, inbox.take())\n"
        "wait(True, signal.SIGUSR1, signal.SIGTERM)\nwait(False, signal.SIGTERM)\n"
        "hit(signal.SIGINT); wait(True)\nhit(signal.SIGTERM); print(inbox.take())\nwait(True, signal.SIGWINCH)"
    )
    assert run(script) == ("AskedToEndError 15 [10, 15]\nwent on [15]\nAskedToEndError 2 [2]\n[15]\nwent on [28]\n")
