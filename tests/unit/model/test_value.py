"""tidegate.model.value."""

from __future__ import annotations

import copy
import pickle

import pytest

from tidegate.model.value import Value


class Point(Value):
    """A value of two fields, one with a default."""

    x: int
    y: int = 2


class Other(Value):
    """The same fields under another name."""

    x: int
    y: int = 2


class Hot(Value, hot=True):
    """The same fields, made often."""

    x: int
    y: int = 2


@pytest.mark.parametrize("kind", [Point, Hot])
def test_fields_come_by_place_or_by_name_and_defaults_fill_in(kind: type[Point | Hot]) -> None:
    """A value is made like a dataclass, by compiled code too: from the first one on."""
    assert kind(1) == kind(1, 2) == kind(x=1) == kind(y=2, x=1)
    assert (kind(5, y=6).x, kind(5, y=6).y) == (5, 6)
    with pytest.raises(AttributeError):
        kind(1).x = 2  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(kind(3))) == kind(3)
    assert kind(3).replace(y=4) == kind(3, 4)


def test_a_hot_value_is_as_frozen_as_any_once_it_is_made() -> None:
    """POL-8: it is filled while it is of an open class; afterwards, or where that failed, nothing of it can be set."""
    for _ in range(20):  # from the first one, which compiles, to those that Python has specialised
        made = Hot(1)
        assert type(made) is Hot
        for name in ("x", "new"):
            with pytest.raises(AttributeError):
                setattr(made, name, 5)
        with pytest.raises(AttributeError):
            delattr(made, "x")
        assert (made.x, made.y) == (1, 2)
    begun = Hot.__new__(Hot)
    with pytest.raises(TypeError):
        begun.__init__(z=1)  # type: ignore[call-arg,misc]
    with pytest.raises(AttributeError):
        begun.x = 5  # type: ignore[misc]


@pytest.mark.parametrize(
    ("args", "kwargs"), [((), {}), ((1, 2, 3), {}), ((1,), {"x": 1}), ((1,), {"z": 1}), ((), {"y": 1})]
)
def test_missing_doubled_and_unknown_fields_are_errors(args: tuple[int, ...], kwargs: dict[str, int]) -> None:
    """A mistyped field is never dropped in silence."""
    for kind in (Point, Hot):
        with pytest.raises(TypeError):
            kind(*args, **kwargs)


def test_a_value_never_changes() -> None:
    """POL-8: a frozen snapshot is frozen: neither its fields nor new ones can be set or removed."""
    point = Point(1)
    for act in (lambda: setattr(point, "x", 5), lambda: setattr(point, "new", 5), lambda: delattr(point, "x")):
        with pytest.raises(AttributeError):
            act()
    assert point == Point(1)
    assert not hasattr(point, "__dict__")


def test_equality_and_hash_follow_type_and_fields() -> None:
    """Two values are one when type and fields agree; another type with the same fields is another value."""
    assert hash(Point(1)) == hash(Point(1, 2))
    assert Point(1) != Other(1)
    assert Point(1) != Point(2)
    assert Point(1) != (1, 2)
    assert len({Point(1), Point(1), Other(1)}) == 2


def test_replace_changes_only_what_is_named() -> None:
    """A changed copy; the original stays."""
    point = Point(1)
    assert point.replace(y=9) == Point(1, 9)
    assert point == Point(1)
    with pytest.raises(TypeError):
        point.replace(z=1)


def test_a_value_survives_copying_and_pickling() -> None:
    """Tests and tools may carry values across processes."""
    point = Point(1)
    assert copy.copy(point) == copy.deepcopy(point) == pickle.loads(pickle.dumps(point)) == point
    assert repr(point) == "Point(x=1, y=2)"
