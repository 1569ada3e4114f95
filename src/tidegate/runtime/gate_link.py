"""The front's side of the channel to the gate's process: start it, give it its order, hear of its end.

The gate is forked before any policy text is read. Whatever goes wrong on the other side becomes one of our errors
here: before the task runs a StartError, afterwards the end of file that the front's loop watches for.
"""

from __future__ import annotations

import marshal
import os
import select
import sys
from _socket import AF_UNIX, SOCK_STREAM, socketpair

from tidegate.model.errors import StartError
from tidegate.runtime.channel import ChannelClosedError, send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from tidegate.holds.inside import TaskSockets
    from tidegate.journal.summary import Row

_PIECE = 65536
_GONE = "the gate ended before the task began"
_AGAIN = "run it again; if it stays, this is a bug of tidegate"


class GateLink:
    """A gate's process: its pid and our end of its channel.

    Raises:
        StartError: from every method, when the gate cannot do what it is told before the task runs.
    """

    def __init__(self, warn: Callable[[str], None]) -> None:
        ours, theirs = socketpair(AF_UNIX, SOCK_STREAM)
        self._warn = warn
        self._buffer = bytearray()
        self._failed: StartError | None = None  # what the gate said that it could not do
        if sys.stdout is not None:  # it is None where the stream was closed
            sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                ours.close()
                _detach_standard_streams(theirs.fileno())
                from tidegate.runtime.gate_process import gate_main

                gate_main(theirs)
            finally:
                os._exit(1)
        theirs.close()
        self.channel = ours

    def fileno(self) -> int:
        """Return the descriptor whose end of file means that the gate is gone."""
        return self.channel.fileno()

    def configure(self, order: dict[str, Any]) -> None:
        """Give the gate its task, policy and log. It is not waited for: the hold is built meanwhile."""
        self._say(order)

    def deliver(self, sockets: TaskSockets) -> None:
        """Hand over the sockets made inside the task's namespace; connections to them wait for the gate."""
        self._say(("sockets", sockets.roles), sockets.descriptors)

    def confirm(self) -> None:
        """Wait until the gate serves the listener."""
        self._expect("ready")
        self._expect("serving")

    def follow(self, phase: str, sockets: TaskSockets) -> None:
        """Hand over the sockets of the task's next hold, which is in this phase. The one before has ended."""
        self._say(("next", phase, sockets.roles), sockets.descriptors)

    def confirm_next(self) -> None:
        """Wait until the gate serves those."""
        self._expect("serving")

    def why_not(self) -> StartError | None:
        """Return what kept the gate from serving, None where it serves or has not spoken: then it is not to blame.

        For a hold that found nobody behind the listener: the gate's own reason says more than that.
        """
        if self._failed is not None:
            return self._failed
        try:
            while select.select((self.channel,), (), (), 0)[0]:
                message = self._frame()
                if message[0] == "failed":
                    return StartError(message[1], fix=message[2], code="gate")
        except (ChannelClosedError, OSError):
            return StartError(_GONE, fix=_AGAIN, code="gate")
        return None

    def begin(self, at: float) -> None:
        """Say that the task begins at `at` (Unix time): what the gate saw before was the self-test.

        A gate that is gone by now is found out by the front's loop.
        """
        try:
            send(self.channel, ("begin", at))
        except ChannelClosedError:
            return

    def heard(self, data: bytes) -> None:
        """Take bytes that the front's loop read from the channel: warnings of a running gate."""
        self._buffer += data
        while (message := self._whole_frame()) is not None:
            self._tell(message)

    def finish(self) -> tuple[list[Row], int] | None:
        """End the gate and return its counts: rows and how many did not fit. None when it is gone already."""
        try:
            send(self.channel, ("finish",))
            while (message := self._frame())[0] != "summary":
                self._tell(message)
            return message[1], message[2]
        except (ChannelClosedError, OSError):
            return None
        finally:
            self.close()

    def _frame(self) -> Any:
        """Return the next frame. What the front's loop read last may be the beginning of it."""
        while (message := self._whole_frame()) is None:
            data = self.channel.recv(_PIECE)
            if not data:
                raise ChannelClosedError("end of file")
            self._buffer += data
        return message

    def _whole_frame(self) -> Any:
        """Take one frame off what was read, None while there is no whole one."""
        end = 4 + int.from_bytes(self._buffer[:4], "big")
        if len(self._buffer) < 4 or len(self._buffer) < end:
            return None
        message = marshal.loads(bytes(self._buffer[4:end]))  # noqa: S302  from our own child
        del self._buffer[:end]
        return message

    def _tell(self, message: tuple[Any, ...]) -> None:
        if message[0] in ("warn", "failed"):
            self._warn(": ".join(part for part in message[1:] if part))

    def close(self) -> None:
        """Close our end, which ends the gate, and reap it."""
        if self.pid:
            self.channel.close()
            pid, self.pid = self.pid, 0
            try:
                os.waitpid(pid, 0)
            except ChildProcessError:
                return

    def _say(self, value: Any, fds: Sequence[int] = ()) -> None:
        try:
            send(self.channel, value, fds)
        except ChannelClosedError:
            # It may have said why before it went.
            self._expect("")

    def _expect(self, word: str) -> None:
        try:
            while (message := self._frame())[0] == "warn":
                self._tell(message)
        except (ChannelClosedError, OSError):
            raise StartError(_GONE, fix=_AGAIN, code="gate") from None
        if message[0] == "failed":
            self._failed = StartError(message[1], fix=message[2], code="gate")
            raise self._failed
        if message[0] != word:
            raise StartError(_GONE, code="gate")


def _detach_standard_streams(keep: int) -> None:
    """Let go of everything the task's pipes could be waiting on: the gate holds no stream but its channel."""
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        if fd != keep:
            os.dup2(null, fd)
    os.closerange(3, keep)
    os.closerange(keep + 1, 1 << 20 if keep < 1 << 20 else keep + 2)
