"""Which steps make a view's files read-only or not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.holds.layers import Step, Wishes, readonly_at, steps
from tidegate.holds.mountinfo import is_within


def wishes(**changes: object) -> Wishes:
    """Wishes of which only these say something."""
    fields = {"workspace": "", "shared": (), "firm": (), "guarded": (), "closed": {}, "writable": (), "strict": False}
    return Wishes(**(fields | changes))  # type: ignore[arg-type]


def shown(wanted: Wishes, *paths: str) -> list[str]:
    """What the steps show each path as."""
    said = {step.path: step.readonly for step in steps(wanted)}
    return ["ro" if readonly_at(path, said, strict=wanted.strict) else "rw" for path in paths]


CLOSED = {"/h": ("/h/.rc", "/h/.config", "/h/work", "/h/note"), "/h/.config": ("/h/.config/fish", "/h/.config/app")}
CASES = [
    # what is asked for, and how each path is shown
    ({}, {"/": "rw", "/h": "rw"}),
    ({"strict": True}, {"/": "ro", "/h/work": "ro"}),
    ({"strict": True, "workspace": "/h/work"}, {"/h": "ro", "/h/work": "rw", "/h/works": "ro"}),
    ({"firm": ("/h/w/.venv",), "workspace": "/h/w"}, {"/h/w/.venv/x": "ro", "/h/w/x": "rw"}),
    ({"firm": ("/h/w",), "workspace": "/h/w/sub", "shared": ("/h/w/s",)}, {"/h/w/sub": "ro", "/h/w/s": "ro"}),
    ({"guarded": ("/h/.tools",), "workspace": "/h/.tools/p"}, {"/h/.tools/q": "ro", "/h/.tools/p/x": "rw"}),
    ({"guarded": ("/h/.ssh",), "shared": ("/h/.ssh",)}, {"/h/.ssh": "rw"}),
    ({"guarded": ("/h/.ssh",), "shared": ("/h",)}, {"/h/.ssh": "ro", "/h": "rw"}),
    (
        {"closed": CLOSED, "guarded": ("/h/.rc", "/h/.config/fish"), "workspace": "/h/work"},
        {"/h": "ro", "/h/.rc": "ro", "/h/note": "rw", "/h/work/x": "rw", "/h/.config": "ro", "/h/.config/fish": "ro",
         "/h/.config/app/x": "rw"},
    ),
    ({"closed": CLOSED, "workspace": "/h"}, {"/h": "ro", "/h/work": "rw"}),
    ({"closed": CLOSED, "workspace": "/h", "strict": True}, {"/h": "ro", "/h/note": "rw", "/other": "ro"}),
    ({"closed": CLOSED, "workspace": "/h", "shared": ("/h",)}, {"/h": "rw", "/h/.config": "ro"}),
    ({"closed": CLOSED, "strict": True}, {"/h": "ro", "/h/note": "ro", "/h/.config/app": "ro"}),
    ({"closed": CLOSED, "strict": True, "writable": ("/h/.config/app",)}, {"/h/.config/app": "rw", "/h/note": "ro"}),
    ({"closed": CLOSED, "firm": ("/h",)}, {"/h/note": "ro"}),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "expected"), CASES)
def test_what_is_shown_how(asked: dict[str, object], expected: dict[str, str]) -> None:
    """Firm wins, then what was named by a person, then what is guarded, then a closed folder (HLD-15)."""
    assert shown(wishes(**asked), *expected) == list(expected.values())


def test_steps_come_from_the_outside_in_and_none_is_needless() -> None:
    """Each step changes something: what is guarded in a closed folder needs none of its own."""
    wanted = wishes(closed=CLOSED, guarded=("/h/.rc",), workspace="/h/work")
    found = steps(wanted)
    assert found[0] == Step("/h", readonly=True)
    opened = {"/h/work", "/h/note", "/h/.config/app", "/h/.config/fish"}
    assert set(found[1:]) == {Step(path, readonly=False) for path in opened}
    assert steps(wishes(writable=("/h/.cache",), workspace="/h/work")) == ()


PATHS = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))
SOME = st.lists(PATHS, max_size=3, unique=True).map(tuple)


@given(SOME, SOME, SOME, SOME, st.dictionaries(PATHS, st.just(()), max_size=3), PATHS, st.booleans())
def test_whatever_is_asked_the_promises_hold(
    firm: tuple[str, ...],
    guarded: tuple[str, ...],
    shared: tuple[str, ...],
    writable: tuple[str, ...],
    folders: dict[str, tuple[str, ...]],
    workspace: str,
    strict: bool,
) -> None:
    """Nothing in a firm path is open; a guarded one by name; a closed folder is; strict opens what is named."""
    closed = {folder: tuple(f"{folder}/{name}" for name in "abc") for folder in folders}
    wanted = Wishes(workspace, shared, firm, guarded, closed, writable, strict)
    said = {step.path: step.readonly for step in steps(wanted)}
    named = {workspace, *shared, *writable}

    def ro(path: str) -> bool:
        return readonly_at(path, said, strict=strict)

    assert all(ro(path) and ro(path + "/x") for path in firm)
    assert all(ro(path) for path in guarded if path not in named)
    assert all(ro(folder) for folder in closed if folder not in {*shared, *writable})
    for path, readonly in said.items():
        if strict and not readonly:
            assert any(is_within(path, one) for one in named)
    order = [step.path for step in steps(wanted)]
    assert all(order.index(path) > order.index(other) for path in order for other in order
               if path != other and is_within(path, other))  # fmt: skip
