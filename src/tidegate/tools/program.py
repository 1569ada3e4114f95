"""One run of a tool's program, outside of the task: input by a pipe, output within bounds, and an end (SRV-6).

Rules of the file:

* Nothing that a task says is on a command line or in the environment; no shell reads anything. What it says comes on
  standard input, after it was looked at.
* The program has a session and a process group of its own, no descriptor but its three, a folder of its own that is
  removed afterwards, and no variable but those it was declared with. When its time is over, when it says too much, or
  when nobody waits for it any more, its whole group is killed; and so it is when it has ended.
* The kernel kills it where we are killed (PR_SET_PDEATHSIG).

For a process with one thread.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from fcntl import F_SETPIPE_SZ, fcntl

from tidegate.holds.linux import PR_SET_PDEATHSIG, prctl
from tidegate.model.errors import TidegateError, told_of_bug
from tidegate.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
MOST_ERRORS = 64 << 10  # bytes of standard error that are kept; the rest is read and forgotten
PREFIX = "tool-"  # of the name of a program's folder
NOT_STARTED = 125  # the exit status of what could not start a program; as env(1) and docker(1) have it
_PIECE = 1 << 16
_AFTER = 0.5  # seconds in which what a program left behind may hold its output open


class Ran(Value):
    """How a run went. `why` is a word: `ok`, `failed`, `timeout`, `too-much-output`, `cancelled`, `not-started`.

    `status` is the exit status, negative for a signal; `errors` is what it said on standard error, the end of it.
    """

    why: str
    status: int
    output: bytes
    errors: bytes
    seconds: float


def environment(
    names: Sequence[str], environ: Mapping[str, str], folder: str, more: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables of a tool's program: its own, those named, and `more`."""
    given = {name: environ[name] for name in names if name in environ}
    return {"PATH": PATH, "LANG": "C.UTF-8", **given, **more, "HOME": folder, "TMPDIR": folder}


def run(
    argv: Sequence[str],
    executable: str,
    data: bytes,
    environ: Mapping[str, str],
    *,
    names: Sequence[str] = (),
    more: Mapping[str, str] = {},
    seconds: float,
    most: int,
    base: str,
    life: int = -1,
) -> Ran:
    """Run a program and return how that went; never raises for what the program does.

    `base` is where its fresh folder is made: no task may be able to write there. `executable` is the file itself,
    `most` bounds its output in bytes. `life` is a descriptor that ends when nobody waits any more.
    """

    def begin(folder: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            list(argv),
            executable=executable,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=environment(names, environ, folder, more),
            start_new_session=True,
            preexec_fn=_die_with_us,  # noqa: PLW1509 - one thread, see the head
            umask=0o077,
            bufsize=0,
        )

    return see_through(begin, data, seconds=seconds, most=most, base=base, life=life)


def see_through(
    begin: Callable[[str], subprocess.Popen[bytes] | Forked],
    data: bytes,
    *,
    seconds: float,
    most: int,
    base: str,
    life: int = -1,
) -> Ran:
    """Begin something in a fresh folder, see it to its end, and return how that went; see `run`."""
    began = time.monotonic()
    try:
        folder = tempfile.mkdtemp(prefix=PREFIX, dir=base)
    except OSError as error:
        return Ran("not-started", 127, b"", f"{base}: {os.strerror(error.errno or 5)}".encode(), 0.0)
    try:
        process = begin(folder)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        why = os.strerror(error.errno or 5) if isinstance(error, OSError) else str(error)
        return Ran("not-started", 127, b"", why.encode(), time.monotonic() - began)
    else:
        try:
            why, output, errors = _Talk(process, data, most, began + seconds, life).hear()
        finally:
            _end(process)
        status = process.returncode
        if why == "ok" and status:
            why = "failed"
        return Ran(why, status, output, errors, time.monotonic() - began)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Forked:
    """A child of ours that runs `act` in place of a program, as subprocess.Popen has it.

    Its exit status is what `act` returns, NOT_STARTED where that raises.
    """

    def __init__(self, act: Callable[[], int]) -> None:
        inward, into = os.pipe()
        out, outward = os.pipe()
        error, astray = os.pipe()
        self.returncode = 0
        self.pid = os.fork()
        if self.pid == 0:
            status = NOT_STARTED
            try:
                os.setsid()
                _die_with_us()
                for number, fd in enumerate((inward, outward, astray)):
                    os.dup2(fd, number)
                for fd in (inward, into, out, outward, error, astray):
                    os.close(fd)
                os.umask(0o077)
                status = act()
            except BaseException as problem:  # noqa: BLE001 - the person reads it, in the tool's own log
                told = str(problem) if isinstance(problem, TidegateError) else told_of_bug(problem)
                os.write(2, f"{told}\n".encode())
            finally:
                os._exit(status)
        for fd in (inward, outward, astray):
            os.close(fd)
        self.stdin = open(into, "wb", buffering=0)  # noqa: SIM115 - whoever hears it closes it
        self.stdout = open(out, "rb", buffering=0)  # noqa: SIM115 - likewise
        self.stderr = open(error, "rb", buffering=0)  # noqa: SIM115 - likewise

    def kill(self) -> None:
        """End it."""
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Wait for its end."""
        self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode


def _die_with_us() -> None:
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class _Talk:
    """Feeds a program and hears it, until it has ended or must end."""

    def __init__(
        self, process: subprocess.Popen[bytes] | Forked, data: bytes, most: int, until: float, life: int
    ) -> None:
        assert process.stdin is not None, "a pipe was asked for"
        assert process.stdout is not None, "a pipe was asked for"
        assert process.stderr is not None, "a pipe was asked for"
        self._process = process
        self._stdin, self._stdout, self._stderr = process.stdin, process.stdout, process.stderr
        self._data = memoryview(data)
        self._most = most
        self._until = until
        self._life = life
        self._output = bytearray()
        self._errors = bytearray()
        self._poll = select.poll()

    def hear(self) -> tuple[str, bytes, bytes]:
        """Return how it ended, its output, and the end of what it said on standard error."""
        for stream in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(stream.fileno(), False)
        _try_larger(self._stdin.fileno())
        ended = os.pidfd_open(self._process.pid)
        try:
            why = self._converse(ended)
        finally:
            os.close(ended)
            for stream in (self._stdin, self._stdout, self._stderr):
                stream.close()
        return why, bytes(self._output), bytes(self._errors)

    def _converse(self, ended: int) -> str:
        poll = self._poll
        poll.register(self._stdin, select.POLLOUT)
        for fd in (self._stdout.fileno(), self._stderr.fileno(), ended):
            poll.register(fd, select.POLLIN)
        if self._life >= 0:
            poll.register(self._life, select.POLLRDHUP)
        heard = 2  # streams that are open
        over = False
        while True:
            left = self._until - time.monotonic()
            if left <= 0:
                return "ok" if over else "timeout"
            ready = dict(poll.poll(left * 1000 + 1))
            if self._life in ready and not over:
                return "cancelled"
            if self._stdin.fileno() in ready:
                self._feed()
            for stream, taker in ((self._stdout, self._output), (self._stderr, self._errors)):
                if stream.fileno() in ready and not self._take(stream.fileno(), taker):
                    poll.unregister(stream)
                    heard -= 1
            if len(self._output) > self._most:
                del self._output[self._most :]
                return "too-much-output"
            if ended in ready:
                poll.unregister(ended)
                over = True
                self._until = time.monotonic() + _AFTER
            if over and not heard:
                return "ok"

    def _feed(self) -> None:
        try:
            count = os.write(self._stdin.fileno(), self._data[:_PIECE])
        except BlockingIOError:
            return
        except OSError:
            count = len(self._data)  # it reads no more, which is its affair
        self._data = self._data[count:]
        if not self._data:
            self._poll.unregister(self._stdin)
            self._stdin.close()
            self._stdin = open(os.devnull, "wb", buffering=0)  # noqa: SIM115 - has a descriptor that is never ready

    def _take(self, fd: int, into: bytearray) -> bool:
        try:
            piece = os.read(fd, _PIECE)
        except BlockingIOError:
            return True
        except OSError:
            return False
        into += piece
        if into is self._errors and len(into) > MOST_ERRORS:
            del into[: len(into) - MOST_ERRORS]
        return bool(piece)


def _try_larger(fd: int) -> None:
    try:
        fcntl(fd, F_SETPIPE_SZ, 1 << 20)
    except OSError:
        return  # a user has so many pages for pipes


def _end(process: subprocess.Popen[bytes] | Forked) -> None:
    # Also where it has ended: what it started is still of its group, whose number is not given away before we wait.
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        process.kill()
    process.wait()
