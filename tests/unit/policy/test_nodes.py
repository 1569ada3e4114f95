"""What the leaves of a person's text mean (policy/nodes.py)."""

from __future__ import annotations

import pytest

from tidegate.policy.document import parse_document
from tidegate.policy.nodes import Scalar, Sequence
from tidegate.policy.positions import Problems


def leaf(text: str) -> Scalar:
    """The one entry of a list in YAML."""
    root = parse_document(f"- {text}\n".encode(), Problems("f"))
    assert isinstance(root, Sequence)
    (only,) = root.items
    assert isinstance(only, Scalar)
    return only


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("no", "no"),
        ("on", "on"),
        ("yes", "yes"),
        ("Off", "Off"),
        ("1:30", "1:30"),
        ("0x1F", 31),
        ("0o17", 15),
        ("017", 17),
        ("1_000", "1_000"),
        ("0b11", "0b11"),
        ("12", 12),
        ("-3", -3),
        ("+3", 3),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        (".inf", float("inf")),
        ("-.INF", float("-inf")),
        ("1.2.3", "1.2.3"),
        ("2001-01-01", "2001-01-01"),
        ("true", True),
        ("FALSE", False),
        ("tRUE", "tRUE"),
        ("null", None),
        ("~", None),
        ("'12'", "12"),
        ('"true"', "true"),
        ("''", ""),
        ("9" * 5000, float("inf")),
    ],
)
def test_scalars_mean_what_yaml_1_2_says(text: str, meaning: object) -> None:
    """POL-0: the core schema of YAML 1.2, not 1.1's truth words, octals and base-60 numbers."""
    found = leaf(text)
    assert found.meaning == meaning
    assert type(found.meaning) is type(meaning)
    assert found.is_text is isinstance(meaning, str)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "nothing"),
        ("~", "nothing"),
        ("true", "a truth value"),
        ("1.5", "a number"),
        ("no", "a text"),
        ("'1'", "a text"),
    ],
)
def test_an_error_names_what_a_leaf_is(text: str, kind: str) -> None:
    """POL-0, B14: in the words of YAML 1.2, so that nobody looks for a truth value that is none."""
    assert leaf(text).kind == kind
