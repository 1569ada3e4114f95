"""tidegate.policy.written."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.rule import Layer
from tidegate.policy.document import parse_document
from tidegate.policy.layers import join
from tidegate.policy.loader import load_policy
from tidegate.policy.nodes import Mapping, Scalar, Sequence
from tidegate.policy.positions import Problems
from tidegate.policy.written import Item, document, inline, item_line, note, quoted, scalar

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)


def _value(node: Any) -> Any:
    if isinstance(node, Scalar):
        return node.meaning
    if isinstance(node, Sequence):
        return [_value(item) for item in node.items]
    assert isinstance(node, Mapping)
    return {_value(key): _value(value) for key, value in node.pairs}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a.test:443", "a.test:443"),
        ("never", "never"),
        ("no", '"no"'),
        ("true:443", '"true:443"'),
        ("1.2.3.4:443", '"1.2.3.4:443"'),
        ("1_0:20", '"1_0:20"'),  # sexagesimal in YAML 1.1
        ("[::1]:443", '"[::1]:443"'),
        ("@npm", '"@npm"'),
        ("*.a.test", '"*.a.test"'),
        ("a: b", '"a: b"'),
        ("a\nb", '"a\\u000ab"'),
        ("", '""'),
    ],
)
def test_a_scalar_has_quotes_where_it_needs_them(text: str, wanted: str) -> None:
    """JRN-7: a host stands plain where every reader of YAML takes it for a text, and in quotes elsewhere."""
    assert scalar(text) == wanted
    assert yaml.safe_load(wanted) == text


@given(TEXTS)
def test_every_text_comes_back(text: str) -> None:
    """JRN-7: whatever a host or a path is made of, it comes back as it was, from YAML and from JSON."""
    assert scalar(text).isascii()
    assert max(text, default="") > "\uffff" or json.loads(quoted(text)) == text
    assert yaml.safe_load(scalar(text)) == text


@given(TEXTS)
def test_a_note_is_one_line_of_ascii(text: str) -> None:
    """JRN-7: no note ends its line, moves a cursor or turns the direction of text."""
    assert note(text).isascii()
    assert note(text) == "" or note(text).isprintable()
    assert len(note(text * 50)) <= 400
    assert "##" not in note(f"##{text}##[error]")


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=4), TEXTS, TEXTS)
def test_nothing_is_injected(items: list[tuple[str, str]], head: str, about: str) -> None:
    """JRN-7, POL-15: hosts, notes and heads of any text leave the document with exactly the keys that it was given."""
    written = document(
        {"runtime": {"allow": [Item(rule, note=said) for rule, said in items]}},
        settings=[("default", "deny", about)],
        head=[head],
        tail=[about],
    )
    problems = Problems("p")
    root = parse_document(written.encode(), problems)
    assert not problems
    wanted: dict[str, Any] = {"default": "deny"}
    if items:
        wanted["network"] = {"runtime": {"allow": [rule for rule, _said in items]}}
    assert _value(root) == wanted


def test_a_document_is_a_policy() -> None:
    """JRN-7: what is written loads, with what narrows an entry, its settings and both phases in their order."""
    wide = Item("a.test:443", note="x1")
    narrow = Item("b.test:443", ("GET",), ("/x/**",))
    text = document(
        {
            "runtime": {"allow": [wide, narrow, Item("c.test:443", git="read")], "ask": []},
            "install": {"allow": [Item("@npm")]},
        },
        settings=[("default", "deny", "why"), ("protected_ports", [5432], ""), ("inspect", {"never": ["d.test"]}, "")],
        head=["one", "two"],
        tail=["end"],
    )
    assert text == (
        "# one\n# two\ndefault: deny  # why\nprotected_ports: [5432]\n"
        'inspect: {"never": ["d.test"]}\nnetwork:\n'
        '  install:\n    allow:\n      - "@npm"\n'
        "  runtime:\n    allow:\n      - a.test:443  # x1\n"
        '      - {host: "b.test:443", methods: [GET], paths: ["/x/**"]}\n'
        '      - {host: "c.test:443", git: read}\n# end\n'
    )
    policy = join(load_policy(text.encode(), "p", Layer.COMMAND_LINE))
    assert {rule.text for rule in policy.rules} == {"a.test:443", "b.test:443", "c.test:443", "registry.npmjs.org:443"}


def test_an_entry_stands_between_brackets_too() -> None:
    """JRN-7: in a list in brackets, and so in JSON, an entry has quotes and no note."""
    assert inline(Item("a.test:443", note="x")) == '"a.test:443"'
    assert json.loads(inline(Item("a.test:443", ("GET",), ("/x",)))) == {
        "host": "a.test:443",
        "methods": ["GET"],
        "paths": ["/x"],
    }
    assert item_line(Item("a.test", ("M-SEARCH", "NO"))) == '- {host: "a.test", methods: ["M-SEARCH", "NO"]}'
    assert document({"runtime": {"allow": []}}) == "\n"
    assert document({}, settings=[("locked", True, ""), ("private", "never", "")]) == "locked: true\nprivate: never\n"
