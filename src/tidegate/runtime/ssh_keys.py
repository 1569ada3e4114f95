"""`--ssh-key KEY:HOST`: the front's side of the agent that a task is offered (HLD-14).

KEY is a private key file, a public key file or the fingerprint of a key that the caller's ssh agent holds. HOST is a
name as known_hosts has it, with USER@ in front where one user is meant and :PORT behind where that is not 22. What is
served, and how, is ssh_agent.py, in a process of its own. Only imported where the option is given.
"""

from __future__ import annotations

import os
from _socket import AF_UNIX, SOCK_STREAM, socketpair

from tidegate.model.errors import StartError, UsageError
from tidegate.model.host import HostError, canonical_host
from tidegate.model.value import Value
from tidegate.runtime.channel import ChannelClosedError, receive, send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tidegate.holds.inside import TaskSockets
    from tidegate.journal.summary import Row

_FORM = "--ssh-key KEY:HOST, such as ~/.ssh/id_ed25519:github.com"
_SSH = "22"
_USER = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


class KeyUse(Value):
    """One key for one host: `key` as it was named, `host` in the form of known_hosts, USER@ in front where given."""

    key: str
    host: str

    @property
    def name(self) -> str:
        """The host alone."""
        return self.host.rpartition("@")[2].lstrip("[").partition("]:")[0]

    @property
    def port(self) -> int:
        """The port that is meant."""
        return int(self.host.partition("]:")[2] or _SSH)


def read_ssh_key(text: str, home: str) -> KeyUse:
    """Return what one `--ssh-key` says; `~/` in front is `home`.

    Raises:
        UsageError: when it is none.
    """
    if text.endswith("]") or "]:" in text:  # an IPv6 literal
        head, _, rest = text.rpartition("[")
        address, _, port = rest.partition("]:") if "]:" in rest else (rest[:-1], "", _SSH)
        key, _, who = head.rpartition(":")
        host = f"[{address}]"
    else:
        key, _, host = text.rpartition(":")
        port = _SSH
        if host.isdigit():
            port = host
            key, _, host = key.rpartition(":")
        who, at, host = host.rpartition("@")
        who += at
    try:
        name = canonical_host(host).text
    except HostError:
        name = ""
    good_port = port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65536
    good_user = not who or (len(who) > 1 and who.endswith("@") and _USER.issuperset(who[:-1]))
    if not key or not name or not good_port or not good_user:
        raise UsageError(f"--ssh-key {text!a}: this names no key and host", fix=_FORM)
    if key.startswith("~/"):
        key = home + key[1:]
    if not key.startswith("SHA256:"):
        key = os.path.abspath(key)
    return KeyUse(key, who + (name if port == _SSH else f"[{name}]:{port}"))


def private_files(uses: Iterable[KeyUse]) -> tuple[str, ...]:
    """Return the files of the private keys, as far as they are known: no task is to read them."""
    found = dict.fromkeys(use.key.removesuffix(".pub") for use in uses)
    return tuple(path for path in found if os.path.isfile(path))


def shut(uses: Iterable[KeyUse], rows: Iterable[Row]) -> tuple[str, ...]:
    """Return a line for each host of a key that the gate refused: a key opens no host."""
    refused = {(row[0], row[1]) for row in rows if row[3] == "refused"}
    places = dict.fromkeys((use.name, use.port) for use in uses)
    return tuple(
        f"ssh-key: --ssh-key opens no host: for {name} there is --allow {name}:{port}"
        for name, port in places
        if (name, port) in refused
    )


class SshKeys:
    """The process that serves these keys, as the front sees it.

    Raises:
        StartError: from the constructor, with what is missing.
    """

    def __init__(self, uses: tuple[KeyUse, ...], folder: str, environ: Mapping[str, str]) -> None:
        self.uses = uses
        self._folder = folder
        ours, theirs = socketpair(AF_UNIX, SOCK_STREAM)
        self._pid = os.fork()
        if self._pid == 0:
            try:
                ours.close()
                _alone(theirs.fileno())
                from tidegate.runtime.ssh_agent import agent_main

                agent_main(theirs, uses, folder, environ)
            finally:
                os._exit(1)
        theirs.close()
        self._channel = ours
        try:
            answer = receive(ours)[0]
        except ChannelClosedError:
            answer = ("failed", "--ssh-key: the agent could not be started", "run it again")
        if answer[0] == "failed":
            self.close()
            raise StartError(answer[1], fix=answer[2], code="ssh-key")

    def serve(self, sockets: TaskSockets) -> None:
        """Serve this listening socket of a task's from now on, and no other. What is lost meanwhile stays lost."""
        try:
            send(self._channel, ("serve",), sockets.descriptors)
        except ChannelClosedError:
            return

    def finish(self) -> tuple[str, ...]:
        """End it; lines that say what was signed and what was not."""
        try:
            send(self._channel, ("finish",))
            said: dict[str, int] = receive(self._channel)[0][1]
        except ChannelClosedError:
            return ()
        return tuple(f"{line} \N{MULTIPLICATION SIGN}{count}" if count > 1 else line for line, count in said.items())

    def close(self) -> None:
        """End the process, and wait for it."""
        if self._pid:
            self._channel.close()
            pid, self._pid = self._pid, 0
            try:
                os.waitpid(pid, 0)
                os.rmdir(self._folder)
            except OSError:
                return  # the journal lies there, too


def _alone(keep: int) -> None:
    """Hold no descriptor but the channel, no signal handler of the front, and no part of its terminal."""
    from tidegate.holds import control
    from tidegate.holds.init import fresh_signals

    fresh_signals()
    os.setsid()
    null = os.open("/dev/null", os.O_RDWR)
    for standard in range(3):
        os.dup2(null, standard)
    control.close_all_but((keep,))
