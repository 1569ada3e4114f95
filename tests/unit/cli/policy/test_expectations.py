"""tidegate.cli.policy.expectations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.cli.policy.expectations import read_expectations
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.positions import PolicyErrors


def test_a_file_of_expectations() -> None:
    """POL-14: one destination or a list, a phase or none, each with its place."""
    text = b"policy: p.yaml\nexpect:\n  - allow: [pypi.org, a.com:80]\n  - {deny: '1.2.3.4', phase: install}\n"
    found = read_expectations(text, "t.yaml")
    assert found.policy == "p.yaml"
    assert [(str(one.destination), one.verdict, one.phase, one.source) for one in found.expectations] == [
        ("pypi.org:443", Verdict.ALLOW, Phase.RUNTIME, "t.yaml:3:13"),
        ("a.com:80", Verdict.ALLOW, Phase.RUNTIME, "t.yaml:3:23"),
        ("1.2.3.4:443", Verdict.DENY, Phase.INSTALL, "t.yaml:4:12"),
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("expect: []", "t.yaml: the file expects nothing: "),
        ("", "t.yaml: the file expects nothing: "),
        ("policy: p", "t.yaml: the file expects nothing: "),
        ("expects: []", "t.yaml:1:1: the file has no such key: 'expects': write 'expect'"),
        ("expect: {allow: a.com}", "t.yaml:1:9: a mapping where a list belongs ('expect')"),
        ("expect: [a.com]", "t.yaml:1:10: a text where a mapping belongs (an entry of 'expect')"),
        ("expect: [{}]", "t.yaml:1:10: an entry that names no destination"),
        ("expect: [{allow: []}]", "t.yaml:1:10: an entry that names no destination"),
        ("expect: [{alow: a.com}]", "t.yaml:1:11: an entry of 'expect' has no such key: 'alow': write 'allow'"),
        ("expect: [{allow: 5}]", "t.yaml:1:18: a number where a text belongs ('allow')"),
        ("expect: [{allow: 'a b'}]", "t.yaml:1:18: not a destination (it has ' ', "),
        ("expect: [{allow: '*.a.com'}]", "t.yaml:1:18: not a destination (it has '*', "),
        ("expect: [{allow: 'a.com:0'}]", "t.yaml:1:18: not a destination (the port 0 is outside 1-65535)"),
        ("expect: [{allow: a.com, phase: build}]", "t.yaml:1:32: 'phase' knows no such value: 'build'"),
        ("expect: [{allow: a.com, allow: b.com}]", "t.yaml:1:25: a key twice: 'allow'"),
    ],
)
def test_mistakes_are_named_with_their_place(text: str, line: str) -> None:
    """POL-2's manner for this file too: a mistyped expectation is never passed over as met."""
    with pytest.raises(PolicyErrors) as caught:
        read_expectations(text.encode(), "t.yaml")
    assert str(caught.value).split("\n")[0].startswith(line)


@given(st.one_of(st.binary(max_size=200), st.text("expct: [{}]alowdny-,'\n.", max_size=80).map(str.encode)))
def test_any_bytes_are_expectations_or_errors(data: bytes) -> None:
    """Never another exception, and never an empty list that a CI would take for success."""
    try:
        found = read_expectations(data, "t.yaml")
    except PolicyErrors:
        return
    assert found.expectations
