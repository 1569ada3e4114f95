"""The table of escapes, tried in a container of each engine (HLD-4, HLD-11, HLD-13).

The rows are those of `netns` with its connections captured; what of them counts in a container, and which mean
something else there, is in tidegate/doctor/escapes/in_containers.py, with why.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.engines import IMAGE
from tests.holds.held import HERE
from tests.product import Product
from tidegate.doctor.escapes import rows as _rows  # noqa: F401 (fills the table)
from tidegate.doctor.escapes.attempt import attempt
from tidegate.doctor.escapes.in_containers import SHARES, counting, judged, tried
from tidegate.doctor.escapes.outcome import ESCAPED, OK, UNTESTABLE, results, strangers
from tidegate.doctor.escapes.table import CAPTURED, TABLE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("engines")]

WEAKEN = os.path.join(HERE, "escapes", "weaken.py")
TRIED = tried(CAPTURED, "root")


@functools.cache
def answers(engine: str) -> dict[str, Any]:
    """Try the whole table in one container."""
    return attempt(CAPTURED, rows=TRIED, container={"engine": engine, "image": IMAGE, "shares": SHARES})


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


def not_held(answer: dict[str, Any], names: list[str], column: str) -> list[str]:
    """Return what got out, and which neighbours did not pass."""
    found = judged(counting(names), column, answer)
    return [f"{one.name}: {one.proves} ended with {one.seen}" for one in found if one.state not in (OK, UNTESTABLE)]


def heard_by_nobody(answer: dict[str, Any]) -> None:
    """Hold an answer to what canaries heard: nothing."""
    assert strangers(answer) == []
    assert [said for _, said in answer["heard"] if "escaped-" in said] == []


def test_no_row_gets_out(answer: dict[str, Any]) -> None:
    """Every escape is refused and heard by nobody, and every neighbour passes, but for what is named above.

    HLD-4, HLD-13, HLD-14, B71, B77, B79, B83, B85.
    """
    assert answer.get("status") == 0, answer
    assert not not_held(answer, TRIED, CAPTURED)


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
    container = {"engine": engine, "image": IMAGE, "shares": SHARES}
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
    found = results([TABLE[one] for one in LATE[:-1]], CAPTURED, answer)
    assert [one.name for one in found if one.state != ESCAPED] == []


def test_doctor_tries_the_table_in_a_container(engine: tuple[str, dict[str, str]], tmp_path: Path) -> None:
    """`doctor --escape --hold docker` and `podman`: every row that means something there held, and nothing left."""
    name, environment = engine
    product = Product(tmp_path, user=False)
    product.environment |= environment
    done = product.tidegate("doctor", "--escape", "--hold", name, "--json", timeout=110)
    found = json.loads(done.stdout)
    assert (done.returncode, found["hold"], found["escaped"]) == (0, name, 0), done.stdout
    assert found["reached_without_a_word"] == []
    assert found["held"] > 200
    assert {"late_unix_socket_in_the_workspace", "exchanging_the_file_while_it_is_judged"} <= {
        row["name"] for row in found["rows"] if row["state"] == "ok"
    }
    whole = {**os.environ, **environment}
    listed = subprocess.run([name, "image", "ls"], env=whole, capture_output=True, text=True, check=True).stdout
    assert "tidegate-trial" not in listed
