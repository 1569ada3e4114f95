"""The front's side of the conversation with its gate, whoever that is: a process of its own, or the server.

Whatever goes wrong on the other side becomes one of our errors here: before the task runs a StartError, afterwards the
end of file that the front's loop watches for. The conversation is described in gate_process.py.
"""

from __future__ import annotations

import select

from tidegate.holds.inside import TOOLS
from tidegate.model.errors import StartError
from tidegate.runtime.channel import LENGTH, ChannelClosedError, send
from tidegate.runtime.outcome import GATE_GONE, GATE_GONE_LATE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from tidegate.holds.inside import TaskSockets
    from tidegate.journal.summary import Row

_PIECE = 65536


class Link:
    """Our end of the channel to a gate.

    `gone` is what a person is told when it ends while the task runs, `gone_late` where the command has ended by then.

    Raises:
        StartError: from every method, when the gate cannot do what it is told before the task runs.
    """

    gone = GATE_GONE
    gone_late = GATE_GONE_LATE
    gone_early = "the gate ended before the task began"
    again = "run it again; if it stays, this is a bug of tidegate"
    pid = 0  # of a gate that is our child
    left_open: tuple[bytes, ...] = ()  # lines of what a gate that was killed had open, once it is closed

    def __init__(self, channel: socket, warn: Callable[[str], None]) -> None:
        self.channel = channel
        self._warn = warn
        self._buffer = bytearray()
        self._counted: tuple[list[Row], int] | None = None
        self._failed: StartError | None = None  # what the gate said that it could not do
        self.known = False  # it has taken in what is to be run
        self.returning = False  # it has said that it ends, and that the task may come to the next one
        self.gap = False  # a gate before this one was killed: what it counted is in the task's record only
        self.authority: tuple[str, ...] = ()  # certificates that the task is to trust, once that is known (INS-2)
        self.variables: dict[str, str] = {}  # of the task, where values of secrets are covered; likewise (INS-5)
        self.own: tuple[str, ...] = ()  # those of them that hold the stand-ins
        self.secrets: tuple[str, ...] = ()  # names of secrets that are still to be asked for (`cover`)
        self.tools = -1  # our end of the channel to what answers for the command's tools (tool_link.py)
        self.end_tools: Callable[[], object] | None = None  # ends what tools do, while the gate still hears of it
        self.tell_tools: Callable[[str, Sequence[str]], None] | None = (
            None  # tells that whom to trust, once it is known
        )
        self.on_question: Callable[[Sequence[Any]], None] | None = None  # hears of questions, where they are asked here

    def dumps(self, value: Any) -> bytes:
        """Write a value as this gate reads it."""
        raise NotImplementedError

    def loads(self, data: bytes) -> Any:
        """Read what this gate wrote."""
        raise NotImplementedError

    def fileno(self) -> int:
        """Return the descriptor whose end of file means that the gate is gone."""
        return self.channel.fileno()

    def configure(self, order: dict[str, Any]) -> None:
        """Give the gate its task, policy and log. It is not waited for: the hold is built meanwhile."""
        self._say(order)

    def deliver(self, sockets: TaskSockets) -> None:
        """Hand over the sockets made inside the task's namespace; connections to them wait for the gate."""
        roles, descriptors = self._with_tools(sockets)
        self._say(("sockets", roles), descriptors)

    def confirm(self) -> None:
        """Wait until the gate serves the listener."""
        self.confirm_known()
        self._expect("serving")

    def confirm_known(self) -> None:
        """Wait until the gate has taken in what is to be run."""
        if not self.known:
            for told in self._expect("ready")[1:]:
                self.authority = tuple(told.get("authority", ()))
                self.variables = dict(told.get("variables", {}))
                self.own = tuple(told.get("own", ()))
                self.secrets = tuple(told.get("secrets", ()))
            self.known = True

    def cover(self, environ: Mapping[str, str]) -> None:
        """Get the variables of a task with secrets, where they did not come with what was confirmed."""

    def follow(self, phase: str, sockets: TaskSockets) -> None:
        """Hand over the sockets of the task's next hold, which is in this phase. The one before has ended."""
        roles, descriptors = self._with_tools(sockets)
        self._say(("next", phase, roles), descriptors)

    def _with_tools(self, sockets: TaskSockets) -> tuple[tuple[str, ...], tuple[int, ...]]:
        if self.tools < 0:
            return sockets.roles, sockets.descriptors
        return (*sockets.roles, TOOLS), (*sockets.descriptors, self.tools)

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
            return StartError(self.gone_early, fix=self.again, code="gate")
        return None

    def begin(self, at: float) -> None:
        """Say that the task begins at `at` (Unix time): what the gate saw before was the self-test.

        A gate that is gone by now is found out by the front's loop.
        """
        self._try_to_send(("begin", at))

    def heard(self, data: bytes) -> str:
        """Take bytes that the front's loop read from the channel; say why the task must end, '' where it need not."""
        self._buffer += data
        why = ""
        while (message := self._whole_frame()) is not None:
            if message[0] == "end":
                why = f"tidegate: {message[1]}"
                self.returning = len(message) > 2 and bool(message[2])
            elif message[0] == "summary":
                self._counted = message[1], message[2]
            else:
                self._tell(message)
        return why

    def answer(self, number: int, answer: str) -> None:
        """Answer a question; a gate that is gone by now is found out by the front's loop."""
        self._try_to_send(("answer", number, answer))

    def note(self, event: str) -> None:
        """Have it recorded what happened on the way to the gate."""
        self._try_to_send(("note", event))

    def unattended(self) -> None:
        """Say that nobody can be asked here any more."""
        self._try_to_send(("unattended",))

    def finish(self) -> tuple[list[Row], int] | None:
        """End the gate and return its counts: rows and how many did not fit. None when it is gone already."""
        try:
            if self._counted is None:
                self._try_to_send(("finish",))
                while (message := self._frame())[0] != "summary":
                    self._tell(message)
                self._counted = message[1], message[2]
        except (ChannelClosedError, OSError):
            pass  # it is gone
        finally:
            self.close()
        return self._counted

    def _try_to_send(self, message: tuple[Any, ...]) -> None:
        try:
            self._send(message)
        except ChannelClosedError:
            return  # it may have said its last word before it went

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
        end = LENGTH + int.from_bytes(self._buffer[:LENGTH], "big")
        if len(self._buffer) < LENGTH or len(self._buffer) < end:
            return None
        message = self.loads(bytes(self._buffer[LENGTH:end]))
        del self._buffer[:end]
        return message

    def _tell(self, message: tuple[Any, ...]) -> None:
        if message[0] in ("warn", "failed"):
            self._warn(": ".join(part for part in message[1:] if part))
        elif message[0] in ("asked", "closed") and self.on_question is not None:
            self.on_question(message)

    def close(self) -> None:
        """Close our end, which ends what was served through it."""
        self.channel.close()

    def _send(self, value: Any, fds: Sequence[int] = ()) -> None:
        send(self.channel, value, fds, self.dumps)

    def _say(self, value: Any, fds: Sequence[int] = ()) -> None:
        try:
            self._send(value, fds)
        except ChannelClosedError:
            # It may have said why before it went.
            self._expect("")

    def _expect(self, word: str) -> Any:
        try:
            while (message := self._frame())[0] in ("warn", "asked", "closed"):
                self._tell(message)
        except (ChannelClosedError, OSError):
            raise StartError(self.gone_early, fix=self.again, code="gate") from None
        if message[0] == "failed":
            self._failed = StartError(message[1], fix=message[2], code="gate")
            raise self._failed
        if message[0] != word:
            raise StartError(self.gone_early, code="gate")
        return message
