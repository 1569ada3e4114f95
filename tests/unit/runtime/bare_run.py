"""Run a command under a real front and a real init, in a PID and mount namespace of its own, with no fence.

For the tests of the front: `python bare_run.py [--status FILE] [--gate FD,PID] [--way FD] COMMAND...`. It is `run`
without policy, gate and hold.
"""

from __future__ import annotations

import ctypes
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "src"))

from tidegate.holds import control
from tidegate.holds.init import fresh_signals, run_init
from tidegate.holds.stdio import StdioPlan, plan_stdio
from tidegate.runtime.front import Front
from tidegate.runtime.outcome import die_like, exec_sentence
from tidegate.runtime.signals import SignalInbox

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID = 0x20000, 0x10000000, 0x20000000
MS_NOSUID_NOEXEC, MS_REC_PRIVATE = 0xA, 0x44000
_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


class BareTask:
    """What the front needs of a running task: the same names as holds/hold.py's RunningTask."""

    def __init__(self, stdio: StdioPlan, argv: list[str]) -> None:
        here, there = control.pair()
        uid, gid = os.getuid(), os.getgid()
        ready, go = os.pipe()
        _call("prctl", 36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
        between = os.fork()
        if between == 0:
            os.close(here)
            fresh_signals()
            if uid:
                _call("unshare", CLONE_NEWUSER)
                for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
                    with open(f"/proc/self/{name}", "w") as file:
                        file.write(text)
            _call("unshare", CLONE_NEWNS | CLONE_NEWPID)
            pid = os.fork()
            if pid:
                os.write(go, str(pid).encode())
                os._exit(0)
            self._be_init(there, stdio, argv, (ready, go))
        os.close(there)
        os.close(go)
        self.pid = int(os.read(ready, 20) or b"0")
        os.close(ready)
        os.waitpid(between, 0)
        self.control = here
        self.pty_master: int | None = None
        self.watcher = 0
        self.way = -1
        self.said: dict[int | None, str] = {}
        self.last_words = ""
        while (received := control.receive(here)) is not None and received[0] != "probed":
            if received[0] == "pty":
                self.pty_master = received[1][0]
            elif received[0].startswith("failed"):
                print(f"bare_run: {received[0]}", file=sys.stderr)
                os._exit(78)

    @staticmethod
    def _be_init(there: int, stdio: StdioPlan, argv: list[str], extra: tuple[int, int]) -> None:
        for fd in extra:
            os.close(fd)
        _call("mount", b"none", b"/", None, ctypes.c_ulong(MS_REC_PRIVATE), None)
        _call("mount", b"proc", b"/proc", b"proc", ctypes.c_ulong(MS_NOSUID_NOEXEC), None)
        options = b"newinstance,ptmxmode=0666,mode=620"
        _call("mount", b"devpts", b"/dev/pts", b"devpts", ctypes.c_ulong(MS_NOSUID_NOEXEC), options)
        keep = {0, 1, 2, there, *stdio.keep()}
        for fd in range(3, 256):
            if fd not in keep:
                try:
                    os.close(fd)
                except OSError:
                    continue
        run_init(there, argv=argv, env=dict(os.environ), cwd=os.getcwd(), stdio=stdio)

    def kill(self) -> None:
        """End everything of the task."""
        try:
            os.kill(self.pid, 9)
        except ProcessLookupError:
            return

    def wait(self) -> int:
        """Reap init and close its control socket."""
        os.close(self.control)
        return os.waitpid(self.pid, 0)[1]


def main(arguments: list[str]) -> None:
    """Parse the few options and run."""
    status_file, gate_fd, gate_pid, way = "", None, 0, -1
    while arguments and arguments[0].startswith("--"):
        option = arguments.pop(0)
        if option == "--status":
            status_file = arguments.pop(0)
        elif option == "--gate":
            fd, _, pid = arguments.pop(0).partition(",")
            gate_fd, gate_pid = int(fd), int(pid or 0)
        elif option == "--way":
            way = int(arguments.pop(0))
        else:
            break
    stdio = plan_stdio()
    inbox = SignalInbox.install()
    task = BareTask(stdio, arguments)
    task.way = way
    task.life = None
    outcome = Front(task, stdio, gate_fd=gate_fd, gate_pid=gate_pid, inbox=inbox).run()  # type: ignore[arg-type]
    if outcome.exec_errno:
        os.write(2, exec_sentence(outcome, arguments[0]).encode() + b"\n")
    if status_file:
        with open(status_file, "w") as file:
            file.write(f"{outcome.source} {outcome.exit_status} {outcome.signal}")
    die_like(outcome)


if __name__ == "__main__":
    main(sys.argv[1:])
