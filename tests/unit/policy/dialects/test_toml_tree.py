"""TOML with places."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.policy.dialects.draft import value_of
from tidegate.policy.dialects.toml_tree import parse_toml
from tidegate.policy.nodes import Mapping, Node, Scalar, Sequence
from tidegate.policy.positions import Problems

TEXT = '''\
# a comment with [brackets] and "quotes"
top = "t"   # 'more'
[a.b]
"x.y" = 'lit'
list = [ "one", # [no]
  "t\\"wo", """
three""" ]
inline = { k = true, "q r" = 5 }
when = 1979-05-27 07:32:00
[[many]]
n = 1
[[many]]
n = 2
[many.sub]
deep.er = 0x1F
'''


def tree(text: str) -> Node:
    """Return the tree of a text without problems."""
    problems = Problems("f")
    root = parse_toml(text.encode(), problems)
    assert not problems
    assert root is not None
    return root


def plain(node: Node) -> Any:
    """Return what a tree means."""
    if isinstance(node, Mapping):
        return {key.text: plain(value) for key, value in node.pairs if isinstance(key, Scalar)}
    if isinstance(node, Sequence):
        return [plain(item) for item in node.items]
    assert isinstance(node, Scalar)
    return node.meaning


def places(node: Node) -> dict[str, tuple[int, int]]:
    """Return where each text below a node begins, counted from 1."""
    found: dict[str, tuple[int, int]] = {}
    below = [node]
    while below:
        one = below.pop()
        if isinstance(one, Mapping):
            for key, value in one.pairs:
                assert isinstance(key, Scalar)
                found[key.text] = (key.mark.line + 1, key.mark.column + 1)
                below.append(value)
        elif isinstance(one, Sequence):
            below += one.items
        elif isinstance(one, Scalar) and not one.plain:
            found[one.text] = (one.mark.line + 1, one.mark.column + 1)
    return found


def test_meaning_and_places() -> None:
    """POL-15: the meaning is the standard library's; keys and values have the place where they stand."""
    root = tree(TEXT)
    assert plain(root) == json.loads(json.dumps(tomllib.loads(TEXT), default=str))
    found = places(root)
    assert found["top"] == (2, 1)
    assert found["t"] == (2, 7)
    assert found["x.y"] == (4, 1)
    assert found["lit"] == (4, 9)
    assert found["one"] == (5, 10)
    assert found['t"wo'] == (6, 3)
    assert found["three"] == (6, 12)
    assert found["q r"] == (8, 22)
    assert found["sub"] == (14, 7)
    assert found["er"] == (15, 6)
    many = value_of(root, "many")
    assert isinstance(many, Sequence)
    numbers = [value_of(item, "n") for item in many.items]
    assert [node.mark.line + 1 for node in numbers if node is not None] == [11, 13]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[a\nb = 1\n", "f:1:3: this is not TOML"),
        ("a = 1\na = 2\n", "f:2:6: this is not TOML"),
        ("a = \n", "f:1:5: this is not TOML"),
        ("a = " + "[" * 40 + "]" * 40, "nested deeper than"),
        ("a = 'x\0'", "a NUL byte"),
        ("\ufeffa = 1", "a byte order mark"),
        ("a = " + "[" * 100_000, "this is not TOML"),
    ],
)
def test_what_is_no_toml_is_said_with_its_place(text: str, said: str) -> None:
    """POL-2: one line; nothing is returned."""
    problems = Problems("f")
    assert parse_toml(text.encode(), problems) is None
    assert said in problems.error().lines()[0]


words = st.text("abc.\"'[]#= é\\", min_size=1, max_size=5)


@given(st.dictionaries(words, st.one_of(words, st.lists(words, max_size=3)), max_size=4))
def test_every_text_is_found_where_it_stands(wanted: dict[str, Any]) -> None:
    """POL-15: at the place of each key and text, the source has just that."""
    lines = [
        f"{json.dumps(key, ensure_ascii=False)} = {json.dumps(value, ensure_ascii=False)}"
        for key, value in wanted.items()
    ]
    text = "[t]\n" + "\n".join(lines) + "\n"
    root = tree(text)
    assert plain(root) == {"t": wanted}
    rows = text.split("\n")
    table = value_of(root, "t")
    for found, (line, column) in places(table).items() if table is not None else ():
        assert rows[line - 1][column - 1 :].startswith(json.dumps(found, ensure_ascii=False))


@given(st.text(max_size=60))
def test_no_text_breaks_it(text: str) -> None:
    """POL-2: a tree, or a problem."""
    problems = Problems("f")
    assert (parse_toml(text.encode("utf-8", "replace"), problems) is None) is bool(problems)
