"""The process behind a task's SSH_AUTH_SOCK: signs logins to named hosts, with named keys, and nothing else (HLD-14).

    task ── filter (here) ──┬── ssh-agent of ours: the key, or one made up for the check, each bound to its hosts
                            └── the caller's own agent, where the key is there

Whether a session is with the right host is decided by OpenSSH itself: the agent that we start has the key under a
*destination constraint* (`ssh-add -h`, OpenSSH 8.9), so it verifies the host's signature over the session
(session-bind@openssh.com), compares the host's key with the known ones and signs for that session only. Where the key
is in the caller's agent, a key made up for this run stands for it: our agent is asked for the same login by
that one, and only when it signs is the caller's agent asked for the real one.

Rules of the file: of a task's connection only the three requests of wire/ssh_agent.py go anywhere; one thread a
connection, a bounded number; no private key is ever read here, ssh-add reads it. When the front's end of the channel
closes, this process and its agent end.

Conversation on the channel: gate's framing (channel.py). front -> ("serve",) with a listening socket, in place of the
one before; ("finish",). here -> ("ready",) or ("failed", what, fix); ("said", {sentence: count}).
"""

from __future__ import annotations

import os
import select
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from tidegate.holds import capabilities
from tidegate.model.errors import TidegateError
from tidegate.runtime.channel import ChannelClosedError, receive, send
from tidegate.runtime.ssh_tools import (
    CHECK,
    KNOWN,
    SOCKET,
    Served,
    add_key,
    ask,
    connect,
    known_hosts_files,
    next_message,
    start_agent,
    without_revoked,
)
from tidegate.wire import ssh_agent as wire

if TYPE_CHECKING:
    import _socket
    from collections.abc import Mapping
    from typing import NoReturn

    from tidegate.runtime.ssh_keys import KeyUse

MAX_CLIENTS = 32


def agent_main(channel: _socket.socket, uses: tuple[KeyUse, ...], folder: str, environ: Mapping[str, str]) -> NoReturn:
    """Be that process until the front is gone; `environ` is the caller's."""
    agent = 0
    caller = environ.get("SSH_AUTH_SOCK", "")
    caller = os.path.abspath(caller) if caller else ""
    try:
        os.chdir(folder)  # the socket's path may be longer than a socket's path can be
        capabilities.no_new_privileges()
        capabilities.close_to_others()
        agent = start_agent()
        hosts: dict[str, list[str]] = {}
        for use in uses:
            hosts.setdefault(use.key, []).append(use.host)
        known = without_revoked(known_hosts_files(environ.get("HOME", "")))
        keys = [add_key(key, tuple(names), known, caller) for key, names in hosts.items()]
        send(channel, ("ready",))
        Filter(keys, caller).serve(channel)
    except ChannelClosedError:
        pass
    except BaseException as error:  # noqa: BLE001  the last place that can tell the front what went wrong
        what, fix = (error.what, error.fix) if isinstance(error, TidegateError) else (str(error), "")
        with suppress(ChannelClosedError):
            send(channel, ("failed", what, fix))
    finally:
        if agent:
            os.kill(agent, 9)
            os.waitpid(agent, 0)
        for name in (SOCKET, CHECK, f"{CHECK}.pub", KNOWN):
            if os.path.lexists(name):
                os.unlink(name)
        os._exit(0)


class Client:
    """One connection of a task: what it asks, and what it is told."""

    def __init__(self, keys: list[Served], caller: str, say: dict[str, int]) -> None:
        self._keys = {key.blob: key for key in keys}
        self._caller = caller
        self._said = say
        self._checker: socket.socket | None = None
        self._bound: list[bytes] = []
        self._forwarded = False

    def answer(self, message: bytes) -> bytes:
        """Return the answer to one message.

        Raises:
            OSError: when our agent is gone.
        """
        asked = wire.read_request(message)
        if isinstance(asked, wire.Identities):
            return wire.identities_answer([(key.blob, key.comment) for key in self._keys.values()])
        if isinstance(asked, wire.Bind):
            return self._bind(asked, message)
        if isinstance(asked, wire.Sign) and asked.key in self._keys:
            return self._sign(asked, message, self._keys[asked.key])
        self._say("ssh-key: refused, what was asked for is no login by one of these keys")
        return wire.FAILURE

    def close(self) -> None:
        """Let go of our agent."""
        if self._checker is not None:
            self._checker.close()

    def _bind(self, asked: wire.Bind, message: bytes) -> bytes:
        if asked.forwarded:
            self._forwarded = True  # from here on the requests on this connection are somebody's elsewhere
            return wire.FAILURE
        answer = self._ask(message)
        if answer == wire.SUCCESS:
            self._bound.append(message)
        return answer

    def _sign(self, asked: wire.Sign, message: bytes, key: Served) -> bytes:
        if self._forwarded:
            self._say(f"ssh-key: {key.name} · refused, the agent was forwarded to another host")
            return wire.FAILURE
        if not self._bound:
            self._say(
                f"ssh-key: {key.name} · refused, the client does not say which session it signs for "
                "(OpenSSH 8.9 and newer does)"
            )
            return wire.FAILURE
        if key.check == key.blob:
            answer = self._ask(message)
        else:
            answer = self._ask(wire.sign_request(asked, key.check, wire.key_type(key.check), 0))
        if answer[:1] != bytes((wire.SIGN_RESPONSE,)):
            self._say(f"ssh-key: {key.name} · refused, the session is not with {key.hosts}")
            return wire.FAILURE
        if key.check != key.blob:
            answer = self._ask_caller(message)
        said = "signed a login to" if answer[:1] == bytes((wire.SIGN_RESPONSE,)) else "your agent did not sign for"
        self._say(f"ssh-key: {key.name} · {said} {key.hosts}")
        return answer

    def _ask(self, message: bytes) -> bytes:
        if self._checker is None:
            self._checker = connect(SOCKET)
        return ask(self._checker, message)

    def _ask_caller(self, message: bytes) -> bytes:
        """Ask the caller's own agent, which may bind its keys to hosts as well."""
        try:
            agent = connect(self._caller)
            try:
                for bound in self._bound:
                    ask(agent, bound)
                answer = ask(agent, message)
            finally:
                agent.close()
        except OSError:
            return wire.FAILURE
        return answer if answer[:1] == bytes((wire.SIGN_RESPONSE,)) else wire.FAILURE

    def _say(self, sentence: str) -> None:
        self._said[sentence] = self._said.get(sentence, 0) + 1


class Filter:
    """Serves the task's connections."""

    def __init__(self, keys: list[Served], caller: str) -> None:
        self._keys = keys
        self._caller = caller
        self._said: dict[str, int] = {}
        self._room = threading.Semaphore(MAX_CLIENTS)
        self._lock = threading.Lock()  # one thing at a time: the counts stay right, and a person is asked one at a time

    def serve(self, channel: _socket.socket) -> None:
        """Serve until the front says so, or is gone.

        Raises:
            ChannelClosedError: when it is gone.
        """
        listener: socket.socket | None = None
        while True:
            ready = select.select([channel] if listener is None else [channel, listener], (), ())[0]
            if channel in ready:
                message, descriptors = receive(channel)
                if message[0] == "finish":
                    send(channel, ("said", dict(self._said)))  # nobody is waited for: an agent may ask a person
                    return
                if listener is not None:
                    listener.close()
                listener = socket.socket(fileno=descriptors[0])
                listener.setblocking(False)
            elif listener in ready and listener is not None:
                self._accept(listener)

    def _accept(self, listener: socket.socket) -> None:
        try:
            peer = listener.accept()[0]
        except OSError:
            return
        peer.setblocking(True)
        if not self._room.acquire(blocking=False):
            peer.close()
            return
        threading.Thread(target=self._attend, args=(peer,), daemon=True).start()

    def _attend(self, peer: socket.socket) -> None:
        client = Client(self._keys, self._caller, self._said)
        try:
            while (message := next_message(peer)) is not None:
                with self._lock:
                    answer = client.answer(message)
                peer.sendall(wire.framed(answer))
        except OSError:
            return  # it, or our agent, is gone
        finally:
            client.close()
            peer.close()
            self._room.release()
