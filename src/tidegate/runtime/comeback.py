"""Leads a command in containers from a server that has ended to the next one (HLD-8).

    front                             a child of it                          the next server
    `begin` ── fork ────────────────► waits until a server answers
                                      ["run" | "exec", {..., "again"}] ────► the task as its record has it
                                      the sockets anew, in the same network,
                                      self-test ───────────────────────────► serves them
    `hear` ◄── "back" + its channel ─ ends

Meanwhile nobody listens where the gate was, so the command's connections are refused: it has no route. What it may do
afterwards is what the server kept of it, not what the configuration says by then.

Rules of the file: the front's loop never waits for a server; the child does, and holds nothing that would keep a way
open (the namespaces that its sockets are made in are named by descriptors, `kept`). A server that says no, or none for
`PATIENCE` seconds, is the end of the task.
"""

from __future__ import annotations

import os
import select
import time

from tidegate.holds import control
from tidegate.model.errors import StartError, TidegateError, told_of_bug

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from tidegate.holds.hold import RunningTask
    from tidegate.runtime.server_link import ServerLink

PATIENCE = 120.0  # seconds for a server to come back
BETWEEN = 0.3  # seconds between looks for one
TRIES = 5  # with servers that are there, and cannot
_FINAL = frozenset(("task-ended", "no-such-task", "version", "peer", "locked"))  # another try would be no better
_HEX = 2000  # bytes of what was read ahead that one packet takes as hex digits

GONE = "tidegate: the server {}; the command goes on without a network until it is back"
BACK = "tidegate: the server is back, and the command is behind its gate again"
LOST = "tidegate: {}; the command's network stays cut off and it is being ended"


class Comeback:
    """See the head of the file. `state` is the folder by which the next server is found."""

    def __init__(
        self,
        link: ServerLink,
        task: RunningTask,
        state: str,
        *,
        ports: bool = False,
        roots: str = "",
        patience: float = PATIENCE,
    ) -> None:
        self._link = link
        self._task = task
        self._state = state
        self._ports = ports  # whether the listeners are those of the policy's ports (--capture ports)
        self._roots = roots  # what the task trusts but for its authority, as PEM; '' where nothing is read
        self._patience = patience
        self._wire = -1
        self._child = 0
        self._ahead = b""

    def fileno(self) -> int:
        """Return what is readable once there is something to `hear`, -1 while no server is looked for."""
        return self._wire

    def may_return(self) -> bool:
        """Whether the server has said that it ends, and the command need not."""
        return self._link.returning

    def begin(self) -> str:
        """The server is gone: look for the next one; return what a person is told."""
        why = GONE.format("is stopping" if self._link.returning else "is gone")
        self._link.leave()
        ours, theirs = control.pair()
        self._child = os.fork()
        if self._child == 0:
            os.close(ours)
            self._be_child(theirs)
        os.close(theirs)
        self._wire = ours
        return why

    def hear(self) -> tuple[list[str], int, str]:
        """Take what the child says: lines for a person, the gate's descriptor or -1, why the task must end or ''."""
        received = control.receive(self._wire)
        if received is None:
            self.close()
            return [], -1, LOST.format("what was to lead it to the next server has ended")
        message, descriptors = received
        word, _, rest = message.partition(" ")
        if word == "warn":
            return [rest], -1, ""
        if word == "ahead":
            self._ahead += bytes.fromhex(rest)
            return [], -1, ""
        ahead, self._ahead = self._ahead, b""
        self.close()
        if word == "back" and descriptors:
            self._link.take_over(descriptors[0], ahead)
            return [BACK], self._link.fileno(), ""
        return [], -1, LOST.format(rest)

    def close(self) -> None:
        """Look no more."""
        if self._wire >= 0:
            os.close(self._wire)  # at which the child ends, whatever it waits for
            self._wire = -1
        child, self._child = self._child, 0
        if child:
            try:
                os.kill(child, 9)
                os.waitpid(child, 0)
            except (ProcessLookupError, ChildProcessError):
                return  # it was reaped elsewhere

    # In the child.

    def _be_child(self, wire: int) -> NoReturn:
        try:
            from tidegate.holds.init import fresh_signals

            fresh_signals()
            os.setsid()  # Ctrl-C is for the command
            null = os.open("/dev/null", os.O_RDWR)
            for standard in range(3):
                os.dup2(null, standard)
            control.close_all_but((wire, *self._task.kept, *((self._link.tools,) if self._link.tools >= 0 else ())))
            link = self._find(wire)
            ahead = link.ahead()
            for at in range(0, len(ahead), _HEX):
                control.send(wire, "ahead " + ahead[at : at + _HEX].hex())
            control.send(wire, "back", (link.fileno(),))
        except TidegateError as error:
            _tell(wire, f"lost {error}")
        except BaseException as error:  # noqa: BLE001 - whatever it is, the front is told, and the task ends
            _tell(wire, f"lost {told_of_bug(error)}")
        finally:
            os._exit(0)

    def _find(self, wire: int) -> ServerLink:
        from tidegate.runtime.server_link import find_server

        until = time.monotonic() + self._patience
        tries = 0
        while True:
            link = None
            try:
                link = find_server(self._state, lambda line: _tell(wire, f"warn {line}"))
                if link is not None:
                    self._join(link)
                    return link
            except StartError as error:
                tries += link is not None
                if link is not None:
                    link.close()
                if error.code in _FINAL or tries >= TRIES:
                    raise
            except TidegateError as error:
                raise StartError(error.what, fix=error.fix, code=error.code) from None
            if time.monotonic() >= until:
                raise StartError(f"no server came within {self._patience:.0f} seconds", fix="", code="server")
            if select.select((wire,), (), (), BETWEEN)[0]:
                os._exit(0)  # the front is gone

    def _join(self, link: ServerLink) -> None:
        told = link.rejoin(self._link)
        if self._roots and link.authority:  # the key of the one before ended with its server
            from tidegate.runtime.trust import renew_files, trust_files

            renew_files(self._task.mounted, dict(trust_files(self._roots, link.authority)))
        phase = told["phase"]
        met = tuple((host, port) for host, port in told["met"].get(phase, ()))
        ports = tuple(told["ports"].get(phase, ())) if self._ports else ()
        serve_again = self._task.serve_again
        assert serve_again is not None
        try:
            serve_again(link.deliver, met, ports)
        except StartError as error:
            raise link.why_not() or error from None
        link.confirm()
        link.begin(time.time())  # noqa: TID251 - it is now that the command is behind this gate


def _tell(wire: int, text: str) -> None:
    try:
        control.send(wire, text.replace("\n", " "))
    except OSError:
        return  # the front is gone
