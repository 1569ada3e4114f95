"""Who answers for a worker's connect() and listen(): the watcher of the namespace holds, outside (HLD-14).

    before it is made     a folder with the starter (starter.py), an init and a socket is mounted into the container
    before it starts      the watcher is forked, and waits at that socket
    it starts             the starter hands its listener over; the watcher joins its user namespace where it has one of
                          its own, looks whether it can do what it must, and says so
    from then on          it is watcher.py, to the letter; when it ends the calls fail

Who connects first is the starter: the folder is private to this user, and nothing of the task has run by then. That
process is the first of the container, so its root is the one that no task can change.

Rules of the file: without the watcher's word nothing of the task runs. It needs the rights that `enter` needs, over
the container's processes: root's for an engine of root's, or a rootless engine of one's own. Where they are not to be
had (`why_not`), the task has no watcher, and is told so at its start; nothing else is taken in its place.
"""

from __future__ import annotations

import os
import socket
import struct

from tidegate.holds import capabilities, control, linux
from tidegate.holds.container import elf_program, starter
from tidegate.holds.container.listening import listen_at
from tidegate.holds.container.small_init import find_init
from tidegate.holds.container.view import file_mount
from tidegate.holds.watcher import KEPT_CAPABILITIES, Watcher, detach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from tidegate.holds.container.engine import Engine

UNWATCHED = "unix sockets that others make in the workspace while the task runs can be reached by it"
_FOLDER = "start"
_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid


def why_not(engine: Engine) -> str:
    """Why connections in this engine's containers cannot be watched from here; '' where they can.

    Raises:
        StartError: where the engine does not answer.
    """
    facts = engine.facts()
    if facts.in_vm:
        return f"{engine.name} runs in a virtual machine"
    if os.geteuid() != 0 and not facts.rootless:
        return f"{engine.name} is root's, and you are not"
    return ""


class Watching:
    """What one worker is given for it, and who watches it."""

    def __init__(self, engine: Engine, folder: str, shares: Sequence[str]) -> None:
        """Make that in the task's folder. `shares` are real paths at which the task may connect to others' sockets.

        Raises:
            StartError: where there is no init to be had.
        """
        init = find_init(engine)
        self.folder = os.path.join(folder, _FOLDER)
        self._shares = tuple(shares)
        self._rootless = engine.facts().rootless
        os.mkdir(self.folder)
        os.chmod(self.folder, 0o755)  # noqa: S103 - what leads to it is private
        self._inside = starter.place()
        for name, content in ((starter.PROGRAM, starter.program(self._inside)), (starter.INIT, b"")):
            path = os.path.join(self.folder, name)
            with open(path, "wb") as file:
                file.write(content)
            os.chmod(path, 0o755)  # noqa: S103
        self._door = listen_at(self.folder, starter.SOCKET, socket.SOCK_SEQPACKET)
        self._heard, self._says = os.pipe()
        os.set_blocking(self._heard, False)
        whole = ["--mount", f"type=bind,src={self.folder},dst={self._inside},readonly"]
        self.mounts: tuple[str, ...] = (*whole, *file_mount(init, f"{self._inside}/{starter.INIT}"))

    def command(self, argv: Sequence[str]) -> tuple[str, ...]:
        """What the container runs."""
        return (f"{self._inside}/{starter.PROGRAM}", f"{self._inside}/{starter.INIT}", "--", *argv)

    def begin(self) -> int:
        """Fork the watcher, which waits for the container; its pid."""
        front = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                self._be_watcher(front)
            finally:
                os._exit(1)
        os.close(self._door)
        os.close(self._says)
        self._door = self._says = -1
        return pid

    def has_begun(self) -> bool:
        """Whether it answers, or did: without that nothing of the task has run. To be asked once."""
        try:
            return os.read(self._heard, 1) == starter.TAKEN
        except BlockingIOError:
            return False

    def close(self) -> None:
        """Give back what is still held."""
        for descriptor in (self._door, self._says, self._heard):
            if descriptor >= 0:
                os.close(descriptor)
        self._door = self._says = self._heard = -1

    def _be_watcher(self, front: int) -> NoReturn:
        capabilities.die_with_parent()
        if os.getppid() != front:
            os._exit(0)  # it was gone before we asked
        detach((self._door, self._says))
        with socket.socket(fileno=self._door) as door:
            peer = door.accept()[0]
        pid, _uid, _gid = _CREDENTIALS.unpack(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        received = control.receive(peer.fileno())
        if pid <= 0 or received is None or len(received[1]) != 1:
            os._exit(1)  # not to be seen from here, or something else
        view = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_CLOEXEC)
        if self._rootless:
            space = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
            if not _is_ours(space):
                linux.call("setns", space, linux.CLONE_NEWUSER)
            os.close(space)
        capabilities.stand_by(front, KEPT_CAPABILITIES)
        watcher = Watcher(received[1][0], view, self._shares, {})
        _try(pid)
        os.write(self._says, starter.TAKEN)
        os.close(self._says)
        peer.send(starter.TAKEN, socket.MSG_NOSIGNAL)
        peer.close()
        watcher.run()


def _is_ours(space: int) -> bool:
    return os.path.samestat(os.fstat(space), os.stat("/proc/self/ns/user"))


def _try(pid: int) -> None:
    """Do what each call needs with the process that waits for us: take a descriptor, read memory, see with its root.

    Raises:
        OSError: where the kernel, or a security module, does not let us.
    """
    process = os.pidfd_open(pid)
    os.close(linux.call("pidfd_getfd", process, 0, 0))
    os.close(process)
    kept, memory = linux.address_of(bytes(8))
    here = kept.to_bytes(8, "little") + (1).to_bytes(8, "little")
    there = elf_program.BASE.to_bytes(8, "little") + (1).to_bytes(8, "little")
    linux.call("process_vm_readv", pid, here, 1, there, 1, 0)
    del memory
    own, theirs = (os.open(path, os.O_PATH | os.O_CLOEXEC) for path in ("/", f"/proc/{pid}/root"))
    for root in (theirs, own):
        os.fchdir(root)
        os.chroot(".")
        os.close(root)
