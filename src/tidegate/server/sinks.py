"""The sinks of a server: what a person set, and the followers that run (JRN-6).

    <state>/sinks/NAME.json        what was set (journal/sinks/definition.py), without a key
    <state>/sinks/NAME.position    how far it has come, and NAME.aside (journal/sinks/keeping.py)
    <keys>/sink-NAME.key           its key, where no task sees it; .client that of its certificate, .proxy its proxy's

Rules of the file: a change is on the disk before it is in force. A key stays with the place it was given for: a sink
that leads elsewhere needs one anew, and so do another certificate and another proxy. Everything here may block, so it
runs in a thread; one change at a time.
"""

from __future__ import annotations

import json
import os
import random
import socket
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from tidegate.journal.heads import newest_head, read_key
from tidegate.journal.sinks.definition import NAME, Keys, World, check, definition_of, make, plain
from tidegate.journal.sinks.follower import Follower
from tidegate.journal.sinks.keeping import Keeper, Kept
from tidegate.journal.sinks.proxy import proxy_of
from tidegate.journal.sinks.record import trial
from tidegate.journal.sinks.sink import LATER, TAKEN, Outcome, attempted
from tidegate.journal.sinks.tail import Tail
from tidegate.model.errors import StartError, UsageError
from tidegate.runtime.state import key_folder, log_folder, make_private_folder, sinks_folder, write_private

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.journal.sinks.definition import Definition
    from tidegate.journal.sinks.sink import Sink

MOST: Final = 20
STOPPING: Final = 3.0  # seconds for all followers to end; what is on its way then is sent again by the next server
TRIAL_SECONDS: Final = 45.0  # for a test: longer than one message may take, and less than a client waits for us
_LOOK = 0.05  # seconds between looks at whether the server stops
_KEY_FILES: Final = {"own": "key", "client": "client", "proxy": "proxy"}
_SUFFIX = ".json"
_LONGEST = 1 << 18


class Sinks:
    """See the head of the file. `wall` gives Unix time in seconds; `warn` gets lines for whoever runs the server."""

    def __init__(self, state: str, *, wall: Callable[[], float], warn: Callable[[str], None]) -> None:
        self._folder = sinks_folder(state)
        self._keys = key_folder(state)
        self._log = log_folder(state)
        self._wall = wall
        self._warn = warn
        self._lock = threading.Lock()
        self._trying = threading.Lock()
        self._running: dict[str, tuple[Definition, Follower]] = {}
        self._stopped = False

    def start(self) -> None:
        """Follow for all that are set; one that cannot be is said, and keeps no other from it."""
        with self._lock:
            for definition in read_definitions(self._folder, self._warn):
                try:
                    self._begin(definition)
                except (StartError, OSError) as error:
                    self._warn(f"no sink {definition.name}: {error}")

    def stop(self) -> None:
        """End all of them."""
        with self._lock:
            self._stopped = True
            followers = [follower for _, follower in self._running.values()]
            self._running = {}
        for follower in followers:
            follower.stop()
        for follower in followers:
            follower.join(STOPPING / len(followers))

    def put(self, definition: Definition, keys: Keys, *, from_start: bool) -> None:
        """Set a sink, new or in place of one of its name, which goes on where that one was.

        A new one begins with what is written from now on, or with the first line that there is.

        Raises:
            UsageError: when it cannot be.
            OSError: when it cannot be kept.
        """
        with self._lock:
            before = self._running.get(definition.name)
            if before is None and len(self._running) >= MOST:
                raise UsageError(f"there are {MOST} sinks already", fix="tidegate sinks remove NAME")
            held = keys if before is None else self._held(before[0], definition, keys)
            check(definition, held)
            make_private_folder(self._folder)
            if before is not None:
                before[1].stop()
                before[1].join(STOPPING)
            try:
                self._keep(definition, held, new=before is None, from_start=from_start)
            except OSError:
                if before is not None:
                    self._begin(before[0])
                raise
            self._begin(definition)

    def _held(self, before: Definition, now: Definition, given: Keys) -> Keys:
        """Return the keys that are given, and of the others those whose place is what it was."""
        had = self._load_keys(before.name)
        same = (before.kind, before.url) == (now.kind, now.url)
        return Keys(
            had.own if given.own is None and same else given.own,
            had.client if given.client is None and same and before.cert == now.cert else given.client,
            had.proxy if given.proxy is None and before.proxy == now.proxy else given.proxy,
        )

    def _keep(self, definition: Definition, keys: Keys, *, new: bool, from_start: bool) -> None:
        keeper = Keeper(self._folder, definition.name, write_private)
        if new or from_start:
            keeper.save(Kept() if from_start else self._now())
        else:
            # Whoever sets it anew has seen what was said of it.
            keeper.save(keeper.load()[0].replace(lost=0, gaps=(), aside=0, error=""))
        for what, path in self._key_paths(definition.name).items():
            key = getattr(keys, what)
            if key is not None:
                write_private(path, key)
                continue
            with suppress(FileNotFoundError):
                os.unlink(path)
        write_private(self._path(definition.name), json.dumps(plain(definition)).encode())

    def remove(self, name: str) -> Definition | None:
        """Have a sink no more, and forget its position and key; None where there is none of this name.

        Raises:
            OSError: when it cannot be taken away.
        """
        with self._lock:
            found = self._running.pop(name, None)
            if found is None:
                return None
            found[1].stop()
            found[1].join(STOPPING)
            for path in (self._path(name), *self._key_paths(name).values()):
                with suppress(FileNotFoundError):
                    os.unlink(path)
            Keeper(self._folder, name, write_private).remove()
            return found[0]

    def test(self, name: str) -> tuple[Definition, Outcome] | None:
        """Send one record that says that it is a test, beside the log, and return what became of it.

        None where there is none of this name. Blocks, for a bounded time; on its own connection, with the same key.

        Raises:
            UsageError: where another test is under way.
        """
        with self._lock:
            found = self._running.get(name)
            if found is None:
                return None
            sink = self._made(found[0])
        if not self._trying.acquire(blocking=False):
            raise UsageError("another sink is being tried", fix="wait for its answer")
        try:
            outcome = self._tried(name, sink)
        finally:
            self._trying.release()
        if outcome.state == TAKEN and outcome.refused:
            outcome = Outcome(LATER, outcome.refused[0])
        return found[0], outcome if not outcome.lost else Outcome(LATER, outcome.why)

    def _tried(self, name: str, sink: Sink) -> Outcome:
        """Try it on a thread that nobody has to wait for: the server may stop meanwhile."""
        said: list[Outcome] = []
        over = threading.Event()

        def attempt() -> None:
            said.append(attempted(sink, [trial(name, self._wall())]))
            sink.close()
            over.set()

        threading.Thread(target=attempt, name=f"test of sink {name}", daemon=True).start()
        end = time.monotonic() + TRIAL_SECONDS
        while not over.wait(_LOOK):
            if self._stopped or time.monotonic() > end:
                sink.abort()
                why = "the server stops" if self._stopped else f"it has not answered within {TRIAL_SECONDS:.0f} s"
                return Outcome(LATER, why)
        return said[0]

    def names(self) -> list[str]:
        """Return what there is. On any thread."""
        return sorted(self._running)

    def shown(self) -> list[dict[str, Any]]:
        """Return how each is doing, by name, as everybody may see it. On any thread."""
        running = sorted(self._running.items())
        head = self._head()
        return [_shown(definition, follower, head) for _, (definition, follower) in running]

    def failing(self) -> list[str]:
        """Return the names of those that cannot send now, or have lost something. On any thread."""
        running = sorted(self._running.items())
        return [name for name, (_, one) in running if one.state.error or one.state.kept.lost or one.state.kept.aside]

    def _begin(self, definition: Definition) -> None:
        if self._stopped:
            return
        sink = self._made(definition)
        keeper = Keeper(self._folder, definition.name, write_private)
        kept, said = keeper.load()
        tail = Tail(self._log, read_key(self._keys), kept.position, head=self._head, wall=self._wall)
        follower = Follower(
            definition.name, sink, tail, keeper, kept, wanted=definition.wanted, wall=self._wall,
            random=random.random, said=said,
        )  # fmt: skip
        self._running[definition.name] = definition, follower
        follower.start()

    def _made(self, definition: Definition) -> Sink:
        keys = self._load_keys(definition.name)
        return make(definition, keys, World(self._log, socket.gethostname(), self._wall))

    def _now(self) -> Kept:
        head = newest_head(self._keys, read_key(self._keys))
        return Kept(head.seq, head.hash) if head is not None else Kept()

    def _head(self) -> int:
        head = self._now()
        return head.seq

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, f"{name}{_SUFFIX}")

    def _key_paths(self, name: str) -> dict[str, str]:
        return {what: os.path.join(self._keys, f"sink-{name}.{end}") for what, end in _KEY_FILES.items()}

    def _load_keys(self, name: str) -> Keys:
        return Keys(**{what: _read(path) for what, path in self._key_paths(name).items()})


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def read_definitions(folder: str, warn: Callable[[str], None]) -> list[Definition]:
    """Return what is set in this folder, by name; what cannot be read is said."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(_SUFFIX))
    except FileNotFoundError:
        return []
    found = []
    for name in names:
        try:
            with open(os.path.join(folder, name), "rb") as file:
                one = definition_of(json.loads(file.read(_LONGEST)))
            if f"{one.name}{_SUFFIX}" != name or not NAME.fullmatch(one.name):
                raise ValueError(name)  # noqa: TRY301  as any other damage
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            warn(f"the sink in {os.path.join(folder, name)} cannot be read, and is left out")
            continue
        found.append(one)
    return found


def _shown(definition: Definition, follower: Follower, head: int) -> dict[str, Any]:
    state = follower.state
    kept = state.kept
    lag = max(0, head - kept.seq)
    return {
        "name": definition.name,
        "kind": definition.kind,
        "host": definition.host,
        "proxy": proxy_of(definition.proxy).place if definition.proxy else "",
        "certificate": bool(definition.cert),
        "types": list(definition.kinds),
        "min": definition.least,
        "state": "failing" if state.error else "behind" if lag else "up to date",
        "error": state.error,
        "position": kept.seq,
        "lag": lag,
        "sent": kept.sent,
        "set_aside": kept.aside,
        "lost": kept.lost,
        "gaps": [{"first": first, "last": last} for first, last in kept.gaps],
        "failing_since": state.failing_since or None,
        "sent_at": state.sent_at or None,
    }
