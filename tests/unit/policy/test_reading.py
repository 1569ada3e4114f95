"""Typed looks at a tree (policy/reading.py)."""

from __future__ import annotations

import pytest

from tidegate.policy.document import parse_document
from tidegate.policy.nodes import Mapping, Node
from tidegate.policy.positions import Problems
from tidegate.policy.reading import Reader


def reader_of(text: str) -> tuple[Reader, Problems, Node]:
    """Return a reader, its problems and the node under the key `v` of a text."""
    problems = Problems("f")
    root = parse_document(text.encode(), problems)
    assert isinstance(root, Mapping)
    return Reader(problems), problems, root.pairs[0][1]


def lines(problems: Problems) -> list[str]:
    """Return the printed problems."""
    return problems.error().lines() if problems else []


@pytest.mark.parametrize(
    ("text", "value", "line"),
    [
        ("v: 5", 5, ""),
        ("v: 1", 1, ""),
        ("v: 10", 10, ""),
        ("v: 0o7", 7, ""),
        ("v: 07", None, "f:1:4: a leading zero ('n'), which YAML 1.1 reads as octal: '07': write it without"),
        ("v: +07", None, "f:1:4: a leading zero ('n'), which YAML 1.1 reads as octal: '+07': write it without"),
        ("v: 0", None, "f:1:4: 'n' is outside its bounds: '0': write a number from 1 to 10"),
        ("v: 11", None, "f:1:4: 'n' is outside its bounds: '11': write a number from 1 to 10"),
        ("v: -5", None, "f:1:4: 'n' is outside its bounds: '-5': write a number from 1 to 10"),
        ("v: 1.5", None, "f:1:4: 'n' is a whole number: '1.5': write a number from 1 to 10"),
        ("v: .inf", None, "f:1:4: 'n' is outside its bounds: '.inf': write a number from 1 to 10"),
        ("v: .nan", None, "f:1:4: 'n' is a whole number: '.nan': write a number from 1 to 10"),
        ("v: '5'", None, "f:1:4: a text where a number belongs ('n'): '5': write a number from 1 to 10"),
        ("v: true", None, "f:1:4: a truth value where a number belongs ('n'): 'true': write a number from 1 to 10"),
        ("v:", None, "f:1:3: nothing where a number belongs ('n'): write a number from 1 to 10"),
        ("v: [5]", None, "f:1:4: a list where a number belongs ('n'): write a number from 1 to 10"),
        ("v: " + "9" * 400, None, "f:1:4: 'n' is outside its bounds: '" + "9" * 59 + "…': write a number from 1 to 10"),
    ],
)
def test_numbers(text: str, value: int | None, line: str) -> None:
    """POL-2: a number is a number within its bounds, and nothing is converted to one."""
    reader, problems, node = reader_of(text)
    assert reader.number(node, "'n'", 1, 10) == value
    assert lines(problems) == ([line] if line else [])


def test_numbers_that_need_not_be_whole() -> None:
    """A clock takes fractions; not-a-number is outside any bounds."""
    reader, problems, node = reader_of("v: 0.5")
    assert reader.number(node, "'n'", 0.1, 10, whole=False) == 0.5
    reader, problems, node = reader_of("v: .nan")
    assert reader.number(node, "'n'", 0.1, 10, whole=False) is None
    assert "outside its bounds" in lines(problems)[0]


@pytest.mark.parametrize(
    ("text", "value", "line"),
    [
        ("v: true", True, ""),
        ("v: False", False, ""),
        ("v: yes", None, "f:1:4: a text where a truth value belongs ('n'): 'yes': write true or false"),
        ("v: 1", None, "f:1:4: a number where a truth value belongs ('n'): '1': write true or false"),
        ("v: 'true'", None, "f:1:4: a text where a truth value belongs ('n'): 'true': write true or false"),
    ],
)
def test_flags(text: str, value: bool | None, line: str) -> None:
    """POL-0: `yes` is a text in YAML 1.2 and no truth value."""
    reader, problems, node = reader_of(text)
    assert reader.flag(node, "'n'") is value
    assert lines(problems) == ([line] if line else [])


def test_words_name_the_nearest() -> None:
    """A value outside a closed list names the nearest one, a hint where there is one, or all of them."""
    for text, said in [("v: stric", "write 'strict'"), ("v: allow", "no"), ("v: xyzzy", "write one of any, strict")]:
        reader, problems, node = reader_of(text)
        assert reader.word(node, "'tls'", ("any", "strict"), {"allow": "no"}) is None
        assert lines(problems)[0].endswith(said)


def test_pairs_refuse_unknown_doubled_and_odd_keys() -> None:
    """POL-2, B14: a key twice is reported at the second, an unknown one with the nearest, others by their kind."""
    reader, problems, node = reader_of(
        "v:\n  one: 1\n  on: 2\n  one: 3\n  5: x\n  <<: {two: 1}\n  [a]: b\n  hosts: c\n"
    )
    got = [key for key, _, _ in reader.pairs(node, "'v'", ("one", "two"), {"hosts": "see below"})]
    assert got == ["one"]
    assert lines(problems) == [
        "f:3:3: 'v' has no such key: 'on': write 'one'",
        "f:4:3: a key twice: 'one': keep one of them; the first is in line 2",
        "f:5:3: a number as a key in 'v': '5': write one of one, two",
        "f:6:3: a merge key: '<<': write the entries out",
        "f:7:3: a list as a key in 'v': write one of one, two",
        "f:8:3: 'v' has no such key: 'hosts': see below",
    ]


def test_what_is_broken_is_reported_once() -> None:
    """A node whose problem the document has noted is passed over in silence."""
    reader, problems, node = reader_of("v: *gone")
    problems_before = len(lines(problems))
    assert reader.text(node, "'v'") is None
    assert reader.items(node, "'v'", "") == []
    assert list(reader.pairs(node, "'v'", ("a",))) == []
    assert len(lines(problems)) == problems_before


def test_sources_name_file_line_and_column() -> None:
    """POL-6: the source of a rule is FILE:LINE:COL, with the file's name safe for a screen."""
    problems = Problems("a\x1bb.yaml")
    root = parse_document(b"x:\n  - y", problems)
    assert isinstance(root, Mapping)
    assert Reader(problems).source(root.pairs[0][1].mark) == "a\\x1bb.yaml:2:3"
