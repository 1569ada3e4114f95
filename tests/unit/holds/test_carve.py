"""What is given and what is gone around, against a plain model of how Landlock judges a path."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from tidegate.holds.carve import NOTHING, READ, WRITE, Levels

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMES = st.sampled_from("abc")
PATHS = st.lists(NAMES, min_size=1, max_size=4).map(lambda names: "/" + "/".join(names))
LEVELS = st.dictionaries(PATHS, st.sampled_from((NOTHING, READ, WRITE)), max_size=6)


def given_at(rules: Mapping[str, int], path: str) -> int:
    """What rules give at a path: the most of what is given to it and to each folder above."""
    found = rules.get(path, NOTHING)
    while path != "/":
        path = os.path.dirname(path)
        found = max(found, rules.get(path, NOTHING))
    return found


def everything(depth: int = 4) -> list[str]:
    """Every path of a tree in which each folder has a, b and c."""
    found = [""]
    level = [""]
    for _ in range(depth):
        level = [f"{path}/{name}" for path in level for name in "abc"]
        found += level
    return ["/", *found[1:]]


TREE = everything()


def names_in(folder: str) -> list[str]:
    """What is in a folder of that tree."""
    if folder.count("/") >= 4 and folder != "/":
        return []
    return [f"{folder.rstrip('/')}/{name}" for name in "abc"]


@given(LEVELS, st.sampled_from((NOTHING, READ, WRITE)))
def test_nothing_gets_more_than_its_level(said: dict[str, int], top: int) -> None:
    """No path has more than its level, and what was there and has no parts has just that (HLD-15)."""
    levels = Levels({"/": top} | said)
    rules = dict(levels.rules(names_in))
    for path in TREE:
        level = levels.at(path)
        assert given_at(rules, path) <= level, path
        if not levels.holds(path):
            assert given_at(rules, path) == level, path


@given(LEVELS, PATHS, st.text("xyz", min_size=1, max_size=3))
def test_a_name_that_comes_later_gets_no_more_either(said: dict[str, int], folder: str, name: str) -> None:
    """A name that was not there when the rules were made has at most the level of its place (HLD-15)."""
    levels = Levels({"/": WRITE} | said)
    rules = dict(levels.rules(names_in))
    later = f"{folder}/{name}"
    assert given_at(rules, later) <= levels.at(later)


def test_a_workspace_with_something_protected_is_carved() -> None:
    """The folder can be read as a whole; what is beside the protected is given by itself (HLD-15)."""
    levels = Levels({"/": READ, "/w": WRITE, "/w/.git/hooks": READ})
    there = {"/w": ["/w/.git", "/w/src", "/w/x"], "/w/.git": ["/w/.git/hooks", "/w/.git/objects"]}
    rules = levels.rules(lambda path: there.get(path, []))
    assert sorted(rules) == [("/", READ), ("/w/.git/objects", WRITE), ("/w/src", WRITE), ("/w/x", WRITE)]
    assert levels.lowest("/w") == levels.lowest("/w/.git") == READ
    assert levels.lowest("/w/src") == levels.at("/w/new/deep") == WRITE


def test_what_is_hidden_is_under_nothing_that_is_given() -> None:
    """No folder above it is given; its neighbours are (HLD-15)."""
    levels = Levels({"/": WRITE, "/home/u/.config/tidegate": NOTHING})
    there = {
        "/": ["/home", "/usr"],
        "/home": ["/home/u", "/home/v"],
        "/home/u": ["/home/u/.config", "/home/u/x"],
        "/home/u/.config": ["/home/u/.config/tidegate", "/home/u/.config/git"],
    }
    rules = dict(levels.rules(lambda path: there.get(path, [])))
    assert rules == dict.fromkeys(("/usr", "/home/v", "/home/u/x", "/home/u/.config/git"), WRITE)
