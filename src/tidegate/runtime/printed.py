"""What a program prints, for a secret whose source it is: within a time, and no more than a value may have (INS-5).

Rules of the file:

* The program is in a session of its own, so it has no terminal, and what it started in its process group ends with it
  when its time is over or when it prints too much: the gate of a server has to outlive a source that went astray.
* It is done when it has ended, whoever has its standard output by then.
* What it printed is in no error.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PIECE = 1 << 12


class PrintedError(Exception):
    """It printed nothing that can be used; the text says why, in one clause."""


def printed(argv: Sequence[str], environ: Mapping[str, str], *, seconds: float, most: int, asker: int = -1) -> bytes:
    """Run a program and return its standard output, at most `most` bytes. `asker` is a socket to whoever waits for it.

    Raises:
        PrintedError: when it cannot be run, ends with another status than 0, takes longer, prints more, or nobody waits
            for it any more.
    """
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(environ),
            start_new_session=True,
            bufsize=0,
        )
    except (OSError, ValueError) as error:
        why = os.strerror(error.errno or 5).lower() if isinstance(error, OSError) else "it cannot be run"
        raise PrintedError(why) from None
    assert process.stdout is not None, "a pipe was asked for"
    with process.stdout as output:
        try:
            data = _read(process, output.fileno(), seconds, most, asker)
        except BaseException:  # a person's Ctrl-C too
            _end(process)
            raise
    if process.wait():
        raise PrintedError(f"it ended with status {process.returncode}")
    return data


def _read(process: subprocess.Popen[bytes], output: int, seconds: float, most: int, asker: int) -> bytes:
    """Read until the program has ended, and what is in the pipe then."""
    late = time.monotonic() + seconds
    data = b""
    ended = os.pidfd_open(process.pid)
    try:
        look = select.poll()
        look.register(ended, select.POLLIN)
        look.register(output, select.POLLIN)
        if asker >= 0:
            look.register(asker, select.POLLRDHUP)
        while True:
            ready = dict(look.poll(max(0.0, late - time.monotonic()) * 1000))
            if not ready:
                raise PrintedError(f"it does not end within {seconds:g} s")
            if asker in ready:
                raise PrintedError("nobody waits for it any more")
            if output in ready:
                piece = os.read(output, _PIECE)
                data += piece
                if len(data) > most:
                    raise PrintedError(f"it prints more than {most} bytes")
                if not piece:
                    look.unregister(output)
            elif ended in ready:
                return data
            if time.monotonic() >= late:
                raise PrintedError(f"it does not end within {seconds:g} s")
    finally:
        os.close(ended)


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        process.kill()
    process.wait()
