"""in_containers.py: what the table means in a container (tests/holds/test_container_escapes.py tries it)."""

from __future__ import annotations

import io
import tarfile

import pytest

from tidegate.doctor.escapes import rows as _rows  # noqa: F401 (fills the table)
from tidegate.doctor.escapes.in_containers import (
    MEANS_NOTHING,
    NOT_NEEDED,
    NOT_TRIED,
    counting,
    image_tar,
    judged,
    tried,
)
from tidegate.doctor.escapes.outcome import ESCAPED, OK
from tidegate.doctor.escapes.table import CAPTURED, PASSED, TABLE

ATTEMPT, NEIGHBOUR = "late_unix_socket_in_the_workspace", "unix_sockets_of_our_own"


@pytest.mark.parametrize(
    ("name", "seen", "state"),
    [
        (ATTEMPT, "ECONNREFUSED", OK),
        (ATTEMPT, "ENOENT", OK),
        (ATTEMPT, "SIGKILL", OK),
        (ATTEMPT, PASSED, ESCAPED),
        (ATTEMPT, "no answer", ESCAPED),
        (ATTEMPT, "reached", ESCAPED),
        (NEIGHBOUR, PASSED, OK),
        (NEIGHBOUR, "ENOENT", ESCAPED),
    ],
)
def test_what_is_refused_by_any_errno_is_held(name: str, seen: str, state: str) -> None:
    """An attempt may end with another errno than in `netns`; a neighbour must pass (HLD-11)."""
    (found,) = judged([name], CAPTURED, {"answers": {name: seen}, "missing": {}, "heard": [], "asked": []})
    assert found.state == state


def test_what_was_heard_got_out() -> None:
    """Whatever a row answered: a canary that heard its name means that it got out (HLD-11)."""
    answer = {"answers": {ATTEMPT: "EPERM"}, "missing": {}, "heard": [("tcp", f"escaped-{ATTEMPT}")], "asked": []}
    (found,) = judged([ATTEMPT], CAPTURED, answer)
    assert found.state == ESCAPED


def test_each_exception_is_a_row_and_has_its_reason() -> None:
    """No name of a row that is gone, none without a reason, and all other rows are tried and count."""
    named = NOT_TRIED | MEANS_NOTHING | NOT_NEEDED
    assert set(named) <= set(TABLE)
    assert all(named.values())
    rows = tried(CAPTURED, "root")
    assert set(counting(rows)) == {n for n, row in TABLE.items() if row.is_for(CAPTURED, "root")} - set(named)


def test_the_image_holds_no_file() -> None:
    """Folders, and links into the machine's shared /usr: nothing that could be run is brought along."""
    with tarfile.open(fileobj=io.BytesIO(image_tar())) as tar:
        assert all(one.isdir() or one.issym() for one in tar)
