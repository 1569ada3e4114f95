"""A log, and a follower that leads it to a receiver, without a server around them."""

from __future__ import annotations

import os
import ssl
import time
from typing import TYPE_CHECKING, Any, Self

import trustme

from tests.sinks.receivers import Bulk, Hook, Jira, Otlp, Receiver, Syslog
from tidegate.journal.actions import ActionLog
from tidegate.journal.heads import newest_head, read_key
from tidegate.journal.sinks.definition import Definition, Keys, World, make
from tidegate.journal.sinks.follower import Follower
from tidegate.journal.sinks.keeping import Keeper
from tidegate.journal.sinks.record import Wanted
from tidegate.journal.sinks.tail import Tail
from tidegate.runtime.state import write_private

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.journal.sinks.sink import Sink

KINDS = (
    "webhook", "webhook-tls", "elasticsearch", "otlp", "jira", "syslog-unix", "syslog-udp", "syslog-tcp", "syslog-tls",
)  # fmt: skip
CONFIRMS = tuple(kind for kind in KINDS if kind not in ("syslog-unix", "syslog-udp"))  # and can say no in between
STREAMS = tuple(kind for kind in CONFIRMS if kind.startswith("syslog"))
HTTP = tuple(kind for kind in KINDS if not kind.startswith("syslog"))


def wall() -> float:
    """Return Unix time in seconds."""
    return time.time()  # noqa: TID251  the clock comes in here


class Authority:
    """An authority of the test's own: `context` is a server's for localhost, `pem` what verifies it.

    `strict` wants a client to show a certificate, and `client` is one, as the arguments of a target.
    """

    def __init__(self) -> None:
        ca = trustme.CA()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ca.issue_cert("localhost").configure_cert(self.context)
        self.pem = ca.cert_pem.bytes().decode()
        self.strict = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ca.issue_cert("localhost").configure_cert(self.strict)
        self.strict.verify_mode = ssl.CERT_REQUIRED
        ca.configure_trust(self.strict)
        leaf = ca.issue_cert("client.test")
        chain = "".join(pem.bytes().decode() for pem in leaf.cert_chain_pems)
        self.client = {"cert": chain, "cert_key": leaf.private_key_pem.bytes()}


_AUTHORITY: list[Authority] = []


def authority() -> Authority:
    """Return the one of this process: making it takes a moment."""
    if not _AUTHORITY:
        _AUTHORITY.append(Authority())
    return _AUTHORITY[0]


def receiver(kind: str, folder: Path) -> Receiver:
    """Return a receiver of this kind, which does not listen yet."""
    tls = authority().context if kind.endswith("-tls") else None
    if kind.startswith("webhook"):
        return Hook(tls)
    if kind.startswith("syslog"):
        return Syslog(kind.removeprefix("syslog-"), tls, str(folder / "log.sock"))
    made: dict[str, type[Bulk | Otlp | Jira]] = {"elasticsearch": Bulk, "otlp": Otlp, "jira": Jira}
    return made[kind]()


class Log:
    """An action log that is written to, in a folder with its keys."""

    def __init__(self, base: Path, **options: Any) -> None:
        base.mkdir(exist_ok=True)
        self.folder, self.keys = str(base / "log"), str(base / "keys")
        os.makedirs(self.keys, exist_ok=True)
        self.log = self.open(**options)
        self.key = read_key(self.keys)

    def open(self, **options: Any) -> ActionLog:
        """Open it to be written to."""
        return ActionLog(self.folder, self.keys, clock=wall, warn=lambda _: None, **options)

    def blocked(self, count: int) -> list[int]:
        """Write lines, and return their numbers."""
        return [self.log.append("net.blocked", "t1", host=f"h{number}.test:443") for number in range(count)]

    def tasks(self, count: int, issue: str = "ABC-1") -> list[int]:
        """Write tasks from their beginning to their end, and return the numbers of the ends."""
        ends = []
        for number in range(count):
            name = f"t{self.log.head.seq}-{number}"
            self.log.append("task.created", name, name="", issue=issue, hold="netns")
            self.log.append("net.blocked", name, host="h.test:443", reason="no-rule", count=3)
            ends.append(self.log.append("task.ended", name, outcome="exit 0"))
        return ends

    def write(self, kind: str, count: int) -> list[int]:
        """Write what a sink of this kind sends, and return the numbers that it has to arrive with."""
        return self.tasks(count) if kind == "jira" else self.blocked(count)

    def head(self) -> int:
        """Return the number of the last sealed line."""
        found = newest_head(self.keys, self.key)
        return found.seq if found is not None else 0


class Rig:
    """A follower of a log; `stop` and `start` are a server that ends and comes back."""

    def __init__(self, log: Log, definition: Definition, key: bytes, *, wanted: Wanted | None = None) -> None:
        self.log = log
        self._definition = definition
        self._key = key
        self._wanted = wanted or definition.wanted
        self._state = os.path.join(os.path.dirname(log.folder), "sinks")
        os.makedirs(self._state, exist_ok=True)
        self.follower = self.made()

    def made(self) -> Follower:
        """Return a follower that has not begun."""
        keeper = Keeper(self._state, "one", write_private)
        kept, said = keeper.load()
        self.sink: Sink = make(self._definition, Keys(self._key), World(self.log.folder, "box", wall))
        tail = Tail(self.log.folder, self.log.key, kept.position, head=self.log.head, wall=wall)
        return Follower(
            "one", self.sink, tail, keeper, kept, wanted=self._wanted, wall=wall, random=lambda: 0.5,
            first_pause=0.05, said=said,
        )  # fmt: skip

    def start(self) -> None:
        self.follower = self.made()
        self.follower.start()

    def stop(self) -> None:
        self.follower.stop()
        self.follower.join(30)

    def aside(self) -> str:
        """Return what was set aside."""
        path = os.path.join(self._state, "one.aside")
        if not os.path.exists(path):
            return ""
        with open(path, encoding="ascii") as file:
            return file.read()

    def __enter__(self) -> Self:
        self.follower.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def rig(log: Log, receiver: Receiver, **options: Any) -> Rig:
    """Return a follower that leads a log to this receiver, which listens."""
    definition = Definition("one", receiver.url, ca=authority().pem if "s://" in receiver.url else "")
    return Rig(log, definition, receiver.key if receiver.kind != "syslog" else b"", **options)
