"""The column `landlock`: every row of `netns` is tried there, or it is said what stands for it."""

from __future__ import annotations

from tidegate.doctor.escapes import rows as _rows  # noqa: F401 (fills the table)
from tidegate.doctor.escapes.table import LANDLOCK, NETNS, TABLE
from tidegate.doctor.escapes.without_namespaces import _ALSO, _EXPECTED, NOT_THERE


def test_no_row_is_left_out_without_a_word() -> None:
    """What is not tried names what is tried instead, or that there is nothing to try (HLD-11)."""
    for name, row in TABLE.items():
        if NETNS in row.holds and LANDLOCK not in row.holds:
            instead = NOT_THERE[name].rpartition("; ")
            assert not instead[0] or LANDLOCK in TABLE[instead[2]].holds, name


def test_names_in_the_column_are_rows() -> None:
    """A row that was renamed is renamed here, too; none is named twice."""
    named = [name for names in _EXPECTED.values() for name in names.split()]
    assert len(named) == len(set(named))
    assert set(named) | set(_ALSO) | set(NOT_THERE) <= set(TABLE)
    for name in named:
        assert LANDLOCK in TABLE[name].holds, name
