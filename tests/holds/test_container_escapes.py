"""The table of escapes, tried in a container of each engine (HLD-4, HLD-11, HLD-13).

The rows are those of `netns` with its connections captured. What a container has of this machine's files is the
workspace, so that many rows find nothing where `netns` finds something read-only; what counts is that no row gets
through, and that no canary hears of one. The rows that mean something else in a container are named here, with why.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.engines import IMAGE
from tests.holds.held import HERE
from tidegate.doctor.escapes import rows as _rows  # noqa: F401 (fills the table)
from tidegate.doctor.escapes.attempt import attempt
from tidegate.doctor.escapes.outcome import ESCAPED, OK, UNTESTABLE, results, strangers
from tidegate.doctor.escapes.table import CAPTURED, PASSED, TABLE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("engines")]

OWN_INIT = "PID 1 is the engine's small init, which runs as the command's user and has no right either"
OWN_FILES = "what it names is no mount, so it lies in the container's own layer, which goes with the container"
NOT_TRIED = {
    "init_cannot_be_killed": "the init passes SIGTERM on to the command, as people expect of a container",
    "renaming_home": OWN_FILES + "; later rows would find nothing",
    "renaming_above_what_is_hidden": OWN_FILES + "; later rows would find nothing",
}
MEANS_NOTHING = {
    "tracing_init": OWN_INIT,
    "writing_hosts": "the container's own file; what a name leads to is the gate's to judge",
    "every_other_file_of_proc": "/proc/keys is covered by /dev/null, which can be written",
    "an_entry_of_autostart": OWN_FILES,
    "a_unit_of_the_person": OWN_FILES,
    "making_a_folder_on_the_path": OWN_FILES,
    "making_a_hidden_folder_that_was_not_there": OWN_FILES,
    "exchanging_the_folder_above": OWN_FILES,
}
NOT_NEEDED = {
    "its_own_address_and_names": "the engine writes the container's hosts",
    "servers_on_loopback_by_ipv6": "docker gives a container without a network no IPv6",
    "own_folders": "the folders are the image's",
    "nothing_of_the_machines_tmp": "the way to the workspace lies below the image's /var/tmp",
    "renaming_beside_what_is_protected": "a folder with mounts in it is not renamed across them",
    "what_is_no_start_up_file": "the person's home is not there",
}
WEAKEN = os.path.join(HERE, "escapes", "weaken.py")
ROWS = [name for name, row in TABLE.items() if row.is_for(CAPTURED, "root")]
TRIED = [name for name in ROWS if name not in NOT_TRIED]


@functools.cache
def answers(engine: str) -> dict[str, Any]:
    """Try the whole table in one container."""
    shares = ["/usr", sys.base_prefix]
    return attempt(CAPTURED, rows=TRIED, container={"engine": engine, "image": IMAGE, "shares": shares})


@pytest.fixture
def answer(engine: tuple[str, dict[str, str]]) -> Iterator[dict[str, Any]]:
    """What the rows answered in this engine."""
    name, environment = engine
    with in_surroundings(environment):
        yield answers(name)


@contextlib.contextmanager
def in_surroundings(environment: dict[str, str]) -> Iterator[None]:
    """Have these variables meanwhile."""
    before = {key: os.environ.get(key) for key in environment}
    os.environ.update(environment)
    try:
        yield
    finally:
        for key, value in before.items():
            os.environ.pop(key, None) if value is None else os.environ.update({key: value})


def not_held(answer: dict[str, Any], tried: list[str], column: str, excused: Collection[str]) -> list[str]:
    """Return what got out, and which neighbours did not pass."""
    wrong = []
    for found in results([TABLE[name] for name in tried], column, answer):
        if found.state in (OK, UNTESTABLE) or found.name in excused:
            continue
        is_neighbour = TABLE[found.name].expected[column] == (PASSED,)
        refused = found.seen.isupper() and " " not in found.seen  # an errno by name, or a signal
        if (is_neighbour and found.name not in NOT_NEEDED) or (not is_neighbour and not refused):
            wrong.append(f"{found.name}: {found.proves} ended with {found.seen}")
    return wrong


def heard_by_nobody(answer: dict[str, Any]) -> None:
    """Hold an answer to what canaries heard: nothing."""
    assert strangers(answer) == []
    assert [said for _, said in answer["heard"] if "escaped-" in said] == []


def test_no_row_gets_out(answer: dict[str, Any]) -> None:
    """Every escape is refused and heard by nobody, and every neighbour passes, but for what is named above.

    HLD-4, HLD-13, HLD-14, B71, B77, B79, B83, B85.
    """
    assert answer.get("status") == 0, answer
    assert not not_held(answer, TRIED, CAPTURED, MEANS_NOTHING)


def test_nobody_outside_heard_anything(answer: dict[str, Any]) -> None:
    """Not one listener of this machine was reached (HLD-4, HLD-14)."""
    heard_by_nobody(answer)


LATE = (
    *("late_unix_socket_in_the_workspace", "late_unix_socket_of_another_network"),
    *("late_unix_socket_by_a_relative_path", "late_unix_socket_by_our_own_process_files"),
    *("late_unix_socket_by_a_descriptor", "late_unix_socket_by_a_symlink", "late_unix_socket_by_a_hard_link"),
    *("exchanging_the_address_while_it_is_judged", "exchanging_the_file_while_it_is_judged"),
    *("exchanging_the_descriptor_while_it_is_judged", "a_listener_of_our_own_for_calls"),
)
"""What the watcher holds, and the starter's own filter: by no other reason are these refused in a container."""


def test_the_watcher_is_what_holds_late_sockets(answer: dict[str, Any]) -> None:
    """Each of them is refused as a socket that nobody listens on is, not because something else is missing (HLD-14)."""
    wrong = {name: answer["answers"][name] for name in LATE if answer["answers"][name] not in ("ECONNREFUSED", "EBUSY")}
    assert wrong == {}


def made_worse(engine: str, switch: str) -> dict[str, Any]:
    """What those rows answer in a container that lacks a part (weaken.py)."""
    container = {"engine": engine, "image": IMAGE, "shares": ["/usr", sys.base_prefix]}
    return attempt(CAPTURED, rows=LATE[:-1], container=container, front=(sys.executable, "-I", WEAKEN, switch))


def test_a_container_that_nobody_watches_does_not_start(engine: tuple[str, dict[str, str]]) -> None:
    """Its starter finds nobody to hand its calls to: nothing runs, which is an error of the start (HLD-7)."""
    name, environment = engine
    with in_surroundings(environment):
        answer = made_worse(name, "nobody_to_hand_to")
    assert answer["answers"] == {}
    assert answer.get("status") == 78, answer
    assert "cannot be watched" in answer["said"]


def test_the_rows_can_see(engine: tuple[str, dict[str, str]]) -> None:
    """A container whose starter hands nothing over: every one of these rows gets out, and is seen to (HLD-11)."""
    name, environment = engine
    with in_surroundings(environment):
        answer = made_worse(name, "no_watcher")
    assert answer.get("status") == 0, answer
    tried = results([TABLE[one] for one in LATE[:-1]], CAPTURED, answer)
    assert [one.name for one in tried if one.state != ESCAPED] == []
