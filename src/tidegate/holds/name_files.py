"""The files by which a C library turns names into addresses, as a task sees them when its look-ups are captured.

resolv.conf names the gate's resolver and no search list: a policy speaks of whole names. nsswitch.conf is the machine's
with `hosts: files dns`: mdns, resolve, myhostname and what else asks elsewhere would only fail. hosts has the task's
own names alone, so that a name from the machine's file is decided on, recorded and looked up by the gate like any
other (ADR-4), and does not become an address that nobody gave a name to.

Rules of the file: the machine's files are read and never written; each gets one of ours bound over it, read-only, in
the task's mounts. A symlink is followed as the task will see it: into a folder of its own, it is made there. Man
pages: resolv.conf(5), nsswitch.conf(5), hosts(5). Static programs and musl read the same files.
"""

from __future__ import annotations

import os

from tidegate.holds import device, inside, mounts
from tidegate.holds.masks import WORKSHOP
from tidegate.holds.mountinfo import is_within
from tidegate.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

RESOLV, NSSWITCH, HOSTS = "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/hosts"
_MOST_LINKS = 40  # as path_resolution(7) has it
_LARGEST = 1 << 20
_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._")

RESOLV_TEXT = f"""\
# Written by tidegate: the gate answers, and nobody else.
nameserver {inside.GATE4}
search .
options timeout:2
"""


class NameFile(Value):
    """One file: where it is bound, and what is in it."""

    path: str
    text: str | bytes


def name_files(hostname: str, replaced: Iterable[str], bound: Iterable[str]) -> tuple[NameFile, ...]:
    """What is bound where; a file that the machine does not have, and that could not be made, is left out.

    `replaced` are the folders that the task has empty ones of its own for, `bound` what is bound back into them.
    """
    own, back = tuple(replaced), tuple(bound)
    switch = _read(NSSWITCH)
    wanted = [(RESOLV, RESOLV_TEXT), (HOSTS, hosts_text(hostname))]
    if switch is not None:
        wanted.append((NSSWITCH, nsswitch_text(switch)))
    found = []
    for path, text in wanted:
        place = place_of(path, own, back)
        if place:
            found.append(NameFile(place, text))
    return tuple(found)


def own_files(
    files: Iterable[tuple[str, bytes]], replaced: tuple[str, ...], bound: tuple[str, ...]
) -> tuple[NameFile, ...]:
    """Other files of ours, over what the machine has there or in a folder of the task's own; each place once."""
    found: dict[str, NameFile] = {}
    for path, data in files:
        place = place_of(path, replaced, bound)
        if place:
            found.setdefault(place, NameFile(place, data))
    return tuple(found.values())


def place_of(path: str, replaced: tuple[str, ...], bound: tuple[str, ...]) -> str:
    """Where `path` leads inside, or could be made to lead; empty where there is no such place."""
    for _ in range(_MOST_LINKS):
        real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        if any(is_within(real, one) for one in replaced) and not any(is_within(real, one) for one in bound):
            return real  # in a folder that is empty so far
        if not os.path.islink(real):
            return real if os.path.isfile(real) else ""
        path = os.path.join(os.path.dirname(real), os.readlink(real))
    return ""


def own_names(hostname: str) -> tuple[str, ...]:
    """The names of a machine that a task takes for its own: its host name, whole and short."""
    if not hostname or not _NAME.issuperset(hostname):
        return ()
    names = dict.fromkeys((hostname, hostname.partition(".")[0]))
    return tuple(name for name in names if name and name != "localhost" and not name.rpartition(".")[2].isdigit())


def hosts_text(hostname: str) -> str:
    """The task's /etc/hosts."""
    own = "".join(f" {name}" for name in own_names(hostname))
    return f"127.0.0.1 localhost{own}\n::1 localhost ip6-localhost ip6-loopback{own}\n"


def nsswitch_text(text: str) -> str:
    """A machine's nsswitch.conf with another line for hosts."""
    kept = [line for line in text.splitlines() if line.split("#")[0].partition(":")[0].strip() != "hosts"]
    return "\n".join([*kept, "hosts: files dns", ""])


def take(files: Iterable[NameFile]) -> list[tuple[str, int]]:
    """Make the files in the workshop of masks.py: (where they go, detached tree), read-only."""
    taken = []
    for number, one in enumerate(files):
        path = f"{WORKSHOP}/name-file-{number}"
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644)
        text = one.text
        os.write(descriptor, text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape"))
        os.close(descriptor)
        tree = mounts.clone(path, recursive=False)
        mounts.set_attributes(tree, mounts.INERT | mounts.READ_ONLY)
        taken.append((one.path, tree))
    return taken


def put(taken: Iterable[tuple[str, int]]) -> None:
    """Bind them where they go, when the task's own folders are there."""
    for path, tree in taken:
        device.place(tree, path)


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(_LARGEST)
    except OSError:
        return None
