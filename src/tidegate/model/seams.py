"""What the gate needs of rooms below it, as small protocols (DESIGN: Asker, Recorder, Inspector).

`runtime/` wires real ones; the gate never imports the rooms that provide them.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Protocol

    from tidegate.model.decision import Decision
    from tidegate.model.destination import Destination
    from tidegate.model.event import Event
    from tidegate.model.host import Host
    from tidegate.model.limits import Limits
    from tidegate.model.reason import Reason
    from tidegate.model.verdict import How
else:
    Protocol = object


class Recorder(Protocol):
    """Takes events from the gate. Must not block and must not raise: a full disk never stops a task."""

    def record(self, event: Event) -> None:
        """Take one event."""

    def flush(self) -> None:
        """Write what was taken; called at the end of each turn of the reactor that recorded something."""


class Asker(Protocol):
    """Someone who may put a decision with verdict `ask` before a person."""

    def ask(self, task: str, decision: Decision, answer: Callable[[Decision], None]) -> Callable[[], None] | None:
        """Open or join the question for this task, host and port.

        Returns a callable that withdraws this connection, or None where nobody is asked: then `answer` is
        never called and the caller refuses at once. `answer` is called once, on the gate's thread, perhaps before
        this returns, with the decision turned into allow or deny.
        """

    def known(self, task: str, decision: Decision) -> Decision | None:
        """Return the decision that an answer from before makes of this one; None where there is none.

        For those whose command line asks no one: what a person said for the whole task counts for them too.
        """

    def failed(self, task: str, decision: Decision) -> None:
        """Hear that what a person allowed is refused all the same, by address (ADR-4)."""

    def spend(self, task: str, decision: Decision, count: int) -> bool:
        """Count bytes that moved under the decision's grant; False when it is good for no more, or is over."""


class Tls(Protocol):
    """One side of one TLS connection, on memory (inspect.terminate.Tls). Its errors are OSErrors."""

    @property
    def pending(self) -> bool:
        """Whether something is to be sent."""

    @property
    def closed(self) -> bool:
        """Whether the other side has announced its end."""

    @property
    def selected(self) -> bytes:
        """The protocol that the handshake agreed on, b"" for none."""

    def feed(self, data: bytes) -> None:
        """Take bytes from the network."""

    def feed_end(self) -> None:
        """Take note that the network brings no more."""

    def take(self) -> bytes:
        """Return what is to be sent; see `pending`."""

    def shake(self) -> bool:
        """Go on with the handshake; True when it is done.

        Raises:
            OSError: it failed. What `take` returns then is the alert.
        """

    @property
    def drained(self) -> bool:
        """Whether all that came is read: `read_into` would find nothing."""

    @property
    def quiet(self) -> bool:
        """Whether the last `read_into` took all that came, with room to spare, and nothing is to be sent."""

    def read_into(self, buffer: bytearray | memoryview, room: int, raw: bytes = b"") -> int | None:
        """Take `raw` from the network, put at most so many plain bytes into a buffer and return how many.

        None while there are none, 0 at an end that the other side announced (`closed`).

        Raises:
            OSError: the connection broke, or ended unannounced.
        """

    def write(self, data: bytes | memoryview) -> bytes:
        """Return what is to be sent for plain bytes.

        Raises:
            OSError: the connection is broken.
        """

    def close(self) -> bytes:
        """Return what announces our end; never raises."""

    def worked(self) -> None:
        """Take note that a connection to a destination works: the next one may resume its session."""

    @property
    def alerted(self) -> bool:
        """Whether the other side ended it by an alert, or wanted another handshake: `why` says more than an end."""

    def why(self) -> tuple[Reason, str]:
        """Return why the last error of a connection to a destination came, and one clause for people."""


class Line(Protocol):
    """One line of the journal in the making (gate.record.Entry)."""

    decision: Decision | None
    method: str
    path: str
    status: int
    up: int
    down: int

    def led(self, location: bytes) -> bool:
        """Take note that the answer leads elsewhere; whether it is refused for that."""

    def came_from(self) -> str:
        """Say who has sent the task here, '' where nobody has."""

    def write(self, how: How, reason: Reason) -> None:
        """Write it; the second call and later ones do nothing."""


class Streams(Protocol):
    """The streams of one HTTP/2 connection and of the one to its destination (inspect.http2.Http2)."""

    over: bool
    keeps: bool  # its destination may know the client by the connection
    moved: int  # grows with everything that happens to a stream

    @property
    def reaching(self) -> bool:
        """Whether it has something to say to the destination, or hears it: not once that was let go."""

    def let_go(self, judge: Callable[[], Decision | None]) -> bytes | None:
        """Forget the destination where nothing is under way; return its last words, None where it is not forgotten.

        The next stream asks `judge` for what the policy says of the destination then; None is a client that has to
        begin anew. What is opened after that waits in `take_upstream`.
        """

    def reached(self, decision: Decision) -> None:
        """A connection to the destination is made again; by this decision, which may still name a refusal."""

    @property
    def held(self) -> bool:
        """Whether a body is held until it was looked at: `beat` from time to time."""

    def beat(self) -> None:
        """A quarter of the time has passed in which the client may be silent in such a body."""

    def calm(self) -> None:
        """Some time has passed: a minute or two."""

    @property
    def streams(self) -> int:
        """How many are open."""

    @property
    def hungry(self) -> bool:
        """Whether there is more to pass on than one turn could."""

    def go_on(self) -> None:
        """Begin the next turn."""

    @property
    def client_waits(self) -> bool:
        """Whether some of what the client said is still to be looked at: take b"" of it next."""

    @property
    def upstream_waits(self) -> bool:
        """Whether some of what the destination said is."""

    def from_client(self, data: bytes) -> None:
        """Take plain bytes of the client, and look at a piece of what came that does not take long."""

    def from_upstream(self, data: bytes) -> None:
        """Take plain bytes of the destination, likewise."""

    def take_client(self) -> bytes:
        """Return what the client is to be sent."""

    def take_upstream(self) -> bytes:
        """Return what the destination is to be sent."""

    def upstream_ended(self, reason: Reason = ..., detail: str = ...) -> None:
        """Take note that the destination is gone, and why; with a clause for people."""

    def ended(self, reason: Reason) -> None:
        """Take note that the client is gone, or is cut."""

    def done(self) -> None:
        """Both sides are closed, and nothing is asked of it any more: let go of all it holds."""


class Scrub(Protocol):
    """The body of one answer on its way back (inspect.clean.CleanBody), without values of secrets.

    What comes out is as long as what went in, but where it is `resized`. Errors are those of wire/.
    """

    resized: bool

    @property
    def pending(self) -> bool:
        """Whether `more` may have something, before anything else is fed."""

    def feed(self, data: bytes) -> bytes:
        """Take bytes; return what can be passed on."""

    def more(self) -> bytes:
        """Go one step on and return the next piece, b"" also where it comes to nothing."""

    def end(self) -> bytes:
        """Return what is left."""


class Cleaner(Protocol):
    """Puts stand-ins in place of values in what a host answers (inspect.clean.Cleaner)."""

    def all(self, data: bytes) -> bytes:
        """Return what is whole, a head say, without values."""

    def asked(self, fields: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """Return the fields of a request so that its answer can be read."""

    def answer(
        self,
        status: int,
        fields: Sequence[tuple[bytes, bytes]],
        asked: Iterable[tuple[bytes, bytes]],
        *,
        empty: bool,
    ) -> tuple[list[tuple[bytes, bytes]], Scrub | None]:
        """Return the fields of a final answer, values still in them, and its body; None for one that is `empty`.

        Raises an error of wire/ with the reason UPSTREAM_RESPONSE where it cannot be read.
        """


class Secrets(Protocol):
    """The secrets of one task (inspect.secrets.Vault): the gate sees the heads, never what is a value in them.

    `bodies` puts values into fields of bodies; what it does not cover is not read for that.
    """

    @property
    def bodies(self) -> Guard:
        """Return it."""

    used: Callable[[str, str, int], None] | None  # hears of the first use of each at a host and port

    def belong(self, host: str, port: int) -> bool:
        """Whether some secret is for this canonical host and port."""

    def cleaner(self, host: str, port: int) -> Cleaner | None:
        """Return what keeps values out of that host's answers; None where it has no secret."""

    def swap(
        self, host: str, port: int, target: bytes, fields: Sequence[tuple[bytes, bytes]], *, tls: bool, method: str = ""
    ) -> tuple[bytes, list[tuple[bytes, bytes]]]:
        """Return the target and the fields that travel on.

        Raises an error of wire/ with the reason SECRET_MISDIRECTED; nothing of the request may be sent then.
        """


class Look(Protocol):
    """One request to a guarded host while it is looked at (inspect.model_watch.Look)."""

    why: str
    reason: Reason
    path: str
    body: bool

    def take(self, data: bytes | memoryview) -> None:
        """Take bytes of the body, where `body` says that it is looked at; `why` may say then why it is refused."""

    def done(self) -> bytes:
        """The body is whole: return what is to be sent in its place, unless `why` says why it is not."""

    def let_go(self) -> None:
        """Give back what is held for it; the second call and later ones do nothing."""

    def answer(self, line: str) -> bytes:
        """Return the body of the answer that refuses, JSON in ASCII."""


class Guard(Protocol):
    """Looks at requests to some hosts before they are sent, and at their bodies.

    That is what an agent asks of its model services (inspect.model_watch.Guard, INS-8), and bodies that a secret
    belongs in (inspect.body_look.BodyGuard, INS-5).
    """

    def covers(self, host: str, port: int) -> bool:
        """Whether what goes there is looked at."""

    def look(
        self,
        place: tuple[str, int],
        method: str,
        target: bytes,
        fields: Sequence[tuple[bytes, bytes]],
        *,
        socket: bool,
        empty: bool,
    ) -> Look:
        """Begin to look at a request: nothing of it may be sent where `why` says something, or before `done`."""


class Inspector(Protocol):
    """Reads inside TLS for one task: its authority and its ends of TLS. Memory only; the gate moves the bytes.

    `guard` looks at calls to model services, where the task has some.
    """

    @property
    def guard(self) -> Guard | None:
        """What looks at the calls that an agent makes; None where nobody asked for that (INS-8)."""

    def covers(self, host: Host) -> bool:
        """Whether it was made for this host."""

    def upstream(self, destination: Destination, alpn: tuple[bytes, ...]) -> Tls:
        """Return the client's end of a new connection to a destination, which offers these protocols."""

    def client(self, destination: Destination, alpn: bytes) -> Tls:
        """Return the server's end of a connection of the task; it selects this protocol, or none where it is empty.

        Raises:
            OSError: there can be no certificate for it.
        """

    def offers(self, alpn: tuple[bytes, ...]) -> tuple[bytes, ...] | None:
        """Return which of a client's protocols are offered to the destination; None where none of them is spoken."""

    def streams(
        self,
        decision: Decision,
        limits: Limits,
        open_line: Callable[[str], Line],
        failure: tuple[Reason, str] | None,
        secrets: Secrets | None = None,
    ) -> Streams:
        """Return what reads the HTTP/2 of one connection; `failure` is why its destination cannot be spoken to.

        `secrets` are the task's.
        """
