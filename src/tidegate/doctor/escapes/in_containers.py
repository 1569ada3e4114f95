"""The table in a container: which rows mean something there, what of their answers counts, and what they are run with.

The rows are those of `netns`. What a container has of this machine's files is the workspace and what the rows need to
run, so many find nothing where `netns` finds something read-only. So it counts that an attempt was refused, by whatever
errno, and that no canary heard of it; a neighbour must pass. What means something else in a container is named here,
with why. tests/holds/test_container_escapes.py and test_relay_escapes.py try it with each engine and transport.

The image holds folders and links and no file: Python, and the programs that rows use, are this machine's /usr, shared.
"""

from __future__ import annotations

import io
import sys
import tarfile
from typing import TYPE_CHECKING, Any

from tidegate.doctor.escapes.outcome import ESCAPED, OK, results
from tidegate.doctor.escapes.table import PASSED, TABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tidegate.doctor.escapes.outcome import Result

_OWN_INIT = "PID 1 is the engine's small init, which runs as the command's user and has no right either"
_OWN_FILES = "what it names is no mount, so it lies in the container's own layer, which goes with the container"
NOT_TRIED = {
    "init_cannot_be_killed": "the init passes SIGTERM on to the command, as people expect of a container",
    "renaming_home": _OWN_FILES + "; later rows would find nothing",
    "renaming_above_what_is_hidden": _OWN_FILES + "; later rows would find nothing",
}
MEANS_NOTHING = {
    "tracing_init": _OWN_INIT,
    "writing_hosts": "the container's own file; what a name leads to is the gate's to judge",
    "every_other_file_of_proc": "/proc/keys is covered by /dev/null, which can be written",
    "an_entry_of_autostart": _OWN_FILES,
    "a_unit_of_the_person": _OWN_FILES,
    "making_a_folder_on_the_path": _OWN_FILES,
    "making_a_hidden_folder_that_was_not_there": _OWN_FILES,
    "exchanging_the_folder_above": _OWN_FILES,
}
NOT_NEEDED = {
    "its_own_address_and_names": "the engine writes the container's hosts",
    "servers_on_loopback_by_ipv6": "docker gives a container without a network no IPv6",
    "own_folders": "the folders are the image's",
    "nothing_of_the_machines_tmp": "the way to the workspace lies below the image's /var/tmp",
    "renaming_beside_what_is_protected": "a folder with mounts in it is not renamed across them",
    "what_is_no_start_up_file": "the person's home is not there",
}
SHARES = tuple(dict.fromkeys(("/usr", sys.base_prefix)))
"""What of this machine the rows are run with."""

_FOLDERS = ("dev", "etc", "home", "proc", "root", "run", "srv", "sys", "tmp", "usr", "var", "var/tmp")
_LINKS = ("bin", "lib", "lib64", "sbin")


def tried(column: str, user: str) -> list[str]:
    """The rows of a column that are tried in a container."""
    return [name for name, row in TABLE.items() if row.is_for(column, user) and name not in NOT_TRIED]


def counting(names: Iterable[str]) -> list[str]:
    """Those of these rows whose answers mean in a container what they mean in `netns`."""
    return [name for name in names if name not in MEANS_NOTHING and name not in NOT_NEEDED]


def judged(names: Iterable[str], column: str, answer: Mapping[str, Any]) -> list[Result]:
    """The results of these rows: an attempt that was refused was held, by whatever errno or signal."""
    found = []
    for one in results([TABLE[name] for name in names], column, answer):
        refused = one.seen.isupper() and " " not in one.seen  # an errno by name, or a signal
        is_attempt = TABLE[one.name].expected[column] != (PASSED,)
        found.append(one.replace(state=OK) if one.state == ESCAPED and is_attempt and refused else one)
    return found


def image_tar() -> bytes:
    """The image, as the tar file that engines import."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as tar:
        for name in _FOLDERS:
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o1777 if name.endswith("tmp") else 0o755
            tar.addfile(folder)
        for name in _LINKS:
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, f"usr/{name}"
            tar.addfile(link)
    return written.getvalue()
