"""A gate in the server: `run` and `exec` speak to it where one runs, and a task's record is with the others there.

The frames are JSON (channel.py); the conversation is that of a gate's process, with a first word that says what is
wanted (server/front_door.py). Where no server runs, finding that out costs one look at a file.
"""

from __future__ import annotations

import os
from _socket import AF_UNIX, SO_RCVTIMEO, SOCK_CLOEXEC, SOCK_STREAM, SOL_SOCKET, socket
from struct import pack

from tidegate import __version__
from tidegate.journal.summary import merged
from tidegate.model.errors import StartError, UsageError
from tidegate.runtime.channel import ChannelClosedError
from tidegate.runtime.link import Link
from tidegate.runtime.state import front_socket, unix_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from tidegate.journal.summary import Row

SERVER_GONE = "tidegate: the server is gone; the task's network is cut off and it is being ended"
SERVER_GONE_LATE = "tidegate: the server was gone before the command ended; its record may be incomplete"
COMMAND_SECONDS = 60  # as secret_sources.py has it
_PATIENCE = 20  # seconds for the first word of a server that is busy
_BUSY = "the server does not answer"


class ServerLink(Link):
    """Our end of a conversation with the server."""

    gone = SERVER_GONE
    gone_late = SERVER_GONE_LATE
    gone_early = "the server ended before the task began"
    again = "start it again: tidegate serve; or run without it: --no-server"

    def __init__(self, channel: socket, warn: Callable[[str], None]) -> None:
        super().__init__(channel, warn)
        self._order: list[Any] = []  # what it was told of the command, but for the policy
        self._earlier: list[tuple[list[Row], int]] = []  # the counts of servers before
        self._asked: dict[int, Any] = {}  # questions that are open

    def dumps(self, value: Any) -> bytes:
        """Write it as JSON."""
        import json

        return json.dumps(value, separators=(",", ":")).encode("ascii")

    def loads(self, data: bytes) -> Any:
        """Read JSON.

        Raises:
            ChannelClosedError: when it is none, so that the other end is no server of this version.
        """
        import json

        try:
            return json.loads(data)
        except ValueError:
            raise ChannelClosedError("no JSON") from None

    def configure(self, order: dict[str, Any]) -> None:
        """Tell the server of the task of a `run`. It is not waited for: the hold is built meanwhile."""
        self._order = ["run", {name: value for name, value in order.items() if name != "policy"}]
        self._say(["run", {**order, "version": __version__}])

    def join(self, order: dict[str, Any]) -> dict[str, Any]:
        """Tell the server of one more command of a task it has; return what it says of that task."""
        self._order = ["exec", order]
        answer: dict[str, Any] = self._ask(["exec", {**order, "version": __version__}], "ready")
        self.known = True
        self.authority = tuple(answer.get("authority", ()))
        self.secrets = tuple(answer.get("covers", ()))
        return answer

    # To the next server, with a command that runs already (HLD-8).

    def leave(self) -> None:
        """The server is gone: keep what it counted, and ask nobody what it asked any more."""
        self.channel.close()
        self._buffer.clear()
        self.returning = False
        self._keep_counted()
        for question in list(self._asked.values()):
            self._tell(("closed", question))

    def rejoin(self, before: ServerLink) -> dict[str, Any]:
        """Tell this server of what `before` told the one that is gone; return what it says of the task."""
        self.tools = before.tools
        word, order = before._order
        answer: dict[str, Any] = self._ask([word, {**order, "version": __version__, "again": True}], "ready")
        self.known = True
        self.authority = tuple(answer.get("authority", ()))
        self.secrets = tuple(answer.get("covers", ()))
        self.cover(os.environ)
        return answer

    def ahead(self) -> bytes:
        """Return what was read and not taken yet."""
        return bytes(self._buffer)

    def take_over(self, channel: int, ahead: bytes) -> None:
        """Go on with this channel, of which that much was read."""
        self.channel = socket(fileno=channel)
        self._buffer += ahead

    def finish(self) -> tuple[list[Row], int] | None:
        """End the conversation and return the counts of all servers that the command was behind."""
        counted = super().finish()
        if counted is None or not self._earlier:
            return counted
        self._keep_counted()
        return list(merged(row for rows, _more in self._earlier for row in rows)), sum(one[1] for one in self._earlier)

    def _keep_counted(self) -> None:
        counted, self._counted = self._counted, None
        if counted is not None:
            self._earlier.append(counted)
        else:
            self.gap = True

    def _tell(self, message: tuple[Any, ...]) -> None:
        if message[0] == "asked":
            self._asked[message[1]["id"]] = message[1]
        elif message[0] == "closed":
            self._asked.pop(message[1]["id"], None)
        super()._tell(message)

    def cover(self, environ: Mapping[str, str]) -> None:
        """Have the server get the values of the task's secrets, and cover them in these variables."""
        if not self.secrets:
            return
        self._be_patient(_PATIENCE + COMMAND_SECONDS * len(self.secrets))  # each may come from a program
        self._say(["cover", dict(environ)])
        told = self._expect("covered")[1]
        self.variables, self.own = dict(told["variables"]), tuple(told["own"])
        self._be_patient(_PATIENCE)

    def given(self, task: str, environ: Mapping[str, str], secrets: int) -> tuple[tuple[str, ...], dict[str, str]]:
        """Return the certificates that a task trusts, and the variables that hold the stand-ins of its `secrets`."""
        self._be_patient(_PATIENCE + COMMAND_SECONDS * secrets)
        told = self.do("given", task=task, environ=dict(environ))
        return tuple(told["authority"]), dict(told["variables"])

    def _be_patient(self, seconds: int) -> None:
        self.channel.setsockopt(SOL_SOCKET, SO_RCVTIMEO, pack("ll", seconds, 0))

    def do(self, verb: str, **order: Any) -> Any:
        """Have the server do something with a task, and return its answer.

        Raises:
            TidegateError: when it cannot.
        """
        return self._ask(["task", verb, {**order, "version": __version__}], "done")

    def _ask(self, message: list[Any], word: str) -> Any:
        self._say(message)
        try:
            answer = self._frame()
        except (ChannelClosedError, OSError):
            raise StartError(self.gone_early, fix=self.again, code="server") from None
        if answer[0] == word:
            return answer[1]
        if answer[0] == "failed":
            kind = UsageError if answer[3] in _USAGE else StartError
            raise kind(answer[1], fix=answer[2], code=answer[3])
        raise StartError(_BUSY, fix=self.again, code="server")


_USAGE = frozenset(("no-such-task", "wait", "folder", "rule", "phase", "tool"))


def find_server(state: str, warn: Callable[[str], None]) -> ServerLink | None:
    """Return a conversation with the server of this state folder, None where none runs.

    Raises:
        StartError: when there is one and it cannot be spoken to.
    """
    path = front_socket(state)
    if not os.path.exists(path):
        return None
    channel = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC)
    try:
        with unix_address(path) as address:
            channel.connect(address)
    except (ConnectionRefusedError, FileNotFoundError):
        channel.close()
        return None  # one that was killed has left it
    except OSError as error:
        channel.close()
        raise StartError(
            f"the server cannot be reached: {os.strerror(error.errno or 0)}", fix="--no-server", code="server"
        ) from None
    channel.setsockopt(SOL_SOCKET, SO_RCVTIMEO, pack("ll", _PATIENCE, 0))
    return ServerLink(channel, warn)


def need_server(state: str, warn: Callable[[str], None], what: str) -> ServerLink:
    """Return a conversation with the server.

    Raises:
        StartError: when none runs; `what` is what needs one.
    """
    link = find_server(state, warn)
    if link is None:
        raise StartError(f"{what} needs the server, and none runs", fix="start it: tidegate serve", code="no-server")
    return link
