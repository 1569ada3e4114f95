"""How rows are added, and what they say of themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tidegate.doctor.escapes import table
from tidegate.doctor.escapes.table import CAPTURED, NETNS, OFFLINE, OPEN, escape, named, neighbour

if TYPE_CHECKING:
    from tidegate.doctor.escapes.table import Attempt


@pytest.fixture(autouse=True)
def of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that the rows of these tests go into, instead of the true one."""
    monkeypatch.setattr(table, "TABLE", {})


def attempt(name: str = "one") -> Attempt:
    """An attempt that does nothing."""

    def run() -> None:
        """Do nothing."""

    return named(run, name, "It does nothing.")


def test_a_row_has_its_answers_for_each_hold() -> None:
    """One answer for all, another one offline and captured; none where it is not tried."""
    escape("EPERM", "EACCES", holds=(NETNS, CAPTURED, OFFLINE), offline="ENOSYS", captured="ECONNRESET")(attempt())
    row = table.TABLE["one"]
    assert row.expected == {NETNS: ("EPERM", "EACCES"), CAPTURED: ("ECONNRESET",), OFFLINE: ("ENOSYS",)}
    assert row.proves == "It does nothing."
    assert [row.is_for(hold, "root") for hold in (NETNS, OFFLINE, OPEN)] == [True, True, False]


def test_a_neighbour_must_pass() -> None:
    """What a task needs is a row whose answer is that it worked; here for one kind of user only."""
    neighbour(who="ordinary")(attempt())
    row = table.TABLE["one"]
    assert row.expected[OPEN] == ("passed",)
    assert (row.is_for(OPEN, "ordinary"), row.is_for(OPEN, "root")) == (True, False)


def test_a_row_that_is_not_for_this_machine_is_not_there() -> None:
    """`only` leaves one out, its function stays what it was."""
    made = attempt()
    assert escape("EPERM", only=False)(made) is made
    assert table.TABLE == {}


def test_two_rows_of_one_name_are_a_mistake() -> None:
    """The second would take the place of the first without a word."""
    escape("EPERM")(attempt())
    with pytest.raises(ValueError, match="two rows are called one"):
        escape("EPERM")(attempt())
    escape("EPERM")(attempt("two"))


def test_a_row_says_what_the_kernel_lacks() -> None:
    """Asked outside; without a question nothing is missing."""
    escape("EPERM", needs=lambda: "no such thing here")(attempt())
    escape("EPERM")(attempt("two"))
    assert [row.missing() for row in table.TABLE.values()] == ["no such thing here", ""]
