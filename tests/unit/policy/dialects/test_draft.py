"""Gathering what a file becomes."""

from __future__ import annotations

import pytest

from tidegate.model.errors import UsageError
from tidegate.model.verdict import Verdict
from tidegate.policy.dialects.draft import Draft, is_list, is_nothing, keys_of, value_of
from tidegate.policy.dialects.imported import ASIDE, EXACTLY, NARROWER, Wanted
from tidegate.policy.document import parse_document
from tidegate.policy.nodes import Node, Scalar
from tidegate.policy.positions import Problems
from tidegate.policy.reading import Reader


def draft(text: str, wanted: Wanted = Wanted()) -> tuple[Draft, Node]:  # noqa: B008 - a frozen value
    """Return a draft and the tree of a text."""
    problems = Problems("f")
    root = parse_document(text.encode(), problems)
    assert root is not None
    return Draft(Reader(problems), wanted, lambda _: False), root


def test_rules_are_canonical_and_stand_once() -> None:
    """POL-3: a rule that is written twice is there once, and both entries say it."""
    one, root = draft("[A.test., a.test, b.test]")
    for item in one.items(root, "'x'"):
        one.rules(item, "x", Verdict.ALLOW, [item.text], "less" if item.text == "b.test" else "")
    imported = one.imported("kraft", "Kraft")
    assert [entry.how for entry in imported.entries] == [EXACTLY, EXACTLY, NARROWER]
    assert [line.text for line in imported.lines] == ["a.test", "a.test", "b.test", "b.test"]
    assert (imported.lines[0].line, imported.lines[0].column) == (1, 2)


def test_a_text_that_is_no_rule_is_an_error() -> None:
    """POL-2: with what to write; no preset comes in as a host, and nothing that is too long."""
    one, root = draft(f"['a b', '@npm', {'a' * 700}]")
    for item in one.items(root, "'x'"):
        one.rules(item, "x", Verdict.ALLOW, [item.text])
    assert (one.entries, one.lines) == ([], {})
    assert len(one.read.problems.error().lines()) == 3


def test_keys_that_nobody_knows() -> None:
    """POL-15: errors where they could narrow; elsewhere left out by name, unless they look like one that is known."""
    one, root = draft("{hosts: [], other: 1, why: 2}")
    assert [key for key, _, _ in one.pairs(root, "it", ("hosts",), {"why": "so"}, others="elsewhere")] == ["hosts"]
    assert [(entry.text, entry.how, entry.why) for entry in one.entries] == [
        ("other", ASIDE, "elsewhere"),
        ("why", ASIDE, "so"),
    ]
    assert not one.read.problems
    for text, others in (("{other: 1}", ""), ("{hsots: 1}", "elsewhere"), ("{hosts: 1, hosts: 2}", "elsewhere")):
        one, root = draft(text)
        list(one.pairs(root, "it", ("hosts",), others=others))
        assert one.read.problems
    one, root = draft("[]")
    assert not list(one.pairs(root, "it", ("hosts",), others="elsewhere"))
    assert one.read.problems


def test_one_of_several_is_chosen() -> None:
    """POL-15: by its name, or where there is one alone; nothing is guessed."""
    names = {"one/": "one", "two": "two"}
    assert draft("{}", Wanted("one"))[0].choose("thing", "things", names) == "one/"
    assert draft("{}")[0].choose("thing", "things", {"two": "two"}) == "two"
    assert draft("{}", Wanted(first=True))[0].choose("thing", "things", names) == "one/"
    with pytest.raises(UsageError, match="f has no thing 'three'"):
        draft("{}", Wanted("three"))[0].choose("thing", "things", names)
    with pytest.raises(UsageError, match="f has 2 things, and nothing says which"):
        draft("{}")[0].choose("thing", "things", names)


def test_a_part_counts_when_it_is_taken() -> None:
    """POL-15: what is wrong in it counts anyway."""
    one, root = draft("[a.test, 'a b']")
    part = one.part()
    for item in part.items(root, "'x'"):
        part.rules(item, "x", Verdict.DENY, [item.text])
    assert one.entries == []
    assert one.read.problems
    one.take(part)
    assert [entry.text for entry in one.entries] == ["a.test"]


def test_looks_without_judging() -> None:
    """POL-15: recognising a file notes nothing."""
    _, root = draft("{a: {b: [1]}, c: }")
    found = value_of(root, "a", "b")
    assert is_list(found)
    assert value_of(root, "a", "x") is None
    assert value_of(root, "a", "b", "c") is None
    assert keys_of(root) == ("a", "c")
    assert keys_of(found) == ()
    nothing = value_of(root, "c")
    assert nothing is not None
    assert is_nothing(nothing)
    assert not is_nothing(Scalar("x", plain=True, mark=root.mark))
