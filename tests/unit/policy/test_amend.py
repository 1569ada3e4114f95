"""tidegate.policy.amend."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.model.rule import Layer
from tidegate.policy.amend import AmendError, Text
from tidegate.policy.loader import load_policy
from tidegate.policy.written import Item, quoted

ONE = {"runtime": {"allow": [Item("new.test:443", note="x1")]}}
BLOCK = """\
# ours
default: deny   # on purpose

network:
  runtime:
    # what the build needs
    allow:
      - a.test:443      # the API
      - {host: "b.test:443", methods: [GET]}
      - host: c.test
        methods: [GET]   # read
      - "@npm"

    deny:
      - d.test
  install:
    allow: [e.test, "f.test"]
    ask: [g.test]
tls: strict
"""


def amended(text: str, additions: object = ONE, unused: str = "", *, prune: bool = False) -> tuple[str, list[str]]:
    """Return a policy with entries added and those of these names marked or taken out."""
    found = Text(text.encode(), "p")
    gone = {entry.at for entry in found.entries() if entry.text in unused.split()}
    assert len(gone) == len(unused.split())
    return found.amended(additions, gone, prune=prune)  # type: ignore[arg-type]


def rules(text: str) -> list[str]:
    """Return what a text lets through or asks for, sorted."""
    layer = load_policy(text.encode(), "p", Layer.COMMAND_LINE)
    return sorted([f"{row[5]} {row[4]} {row[0]}" for row in layer.rows] + [f"@{use.name}" for use in layer.presets])


def test_entries_are_those_that_let_through() -> None:
    """JRN-7: deny rules are no entries to be marked; each other one has its phase and the place its rules carry."""
    found = Text(BLOCK.encode(), "p").entries()
    assert [(entry.phase, entry.text) for entry in found] == [
        ("runtime", "a.test:443"), ("runtime", "b.test:443"), ("runtime", "c.test"), ("runtime", "@npm"),
        ("install", "e.test"), ("install", "f.test"), ("install", "g.test"),
    ]  # fmt: skip
    assert found[0].at == (8, 9)
    assert found[2].at == (10, 15)


def test_an_entry_stands_behind_the_last_one_and_nothing_else_changes() -> None:
    """JRN-7: comments, order, quotes and blank lines stay as their writer left them."""
    text, unmarked = amended(BLOCK)
    assert text == BLOCK.replace('      - "@npm"\n', '      - "@npm"\n      - new.test:443  # x1\n')
    assert unmarked == []


def test_unused_entries_are_marked_behind_their_own_comments() -> None:
    """JRN-7: a mark is a comment at the end of the line; where none can stand (between brackets) it is said."""
    text, unmarked = amended(BLOCK, {}, "a.test:443 b.test:443 c.test @npm e.test")
    lines = text.splitlines()
    assert lines[7:12] == [
        "      - a.test:443      # the API; not used by these tasks",
        '      - {host: "b.test:443", methods: [GET]}  # not used by these tasks',
        "      - host: c.test  # not used by these tasks",
        "        methods: [GET]   # read",
        '      - "@npm"  # not used by these tasks',
    ]
    assert unmarked == ["e.test"]
    assert rules(text) == rules(BLOCK)


def test_a_mark_comes_off_when_an_entry_is_used() -> None:
    """JRN-7: marking twice is marking once, and what is used again loses its mark; so the text comes back."""
    names = "a.test:443 b.test:443 c.test @npm"
    once, _ = amended(BLOCK, {}, names)
    assert amended(once, {}, names)[0] == once
    assert amended(once, {})[0] == BLOCK


def test_pruning_takes_unused_entries_out() -> None:
    """JRN-7: --prune takes out the lines of what was not used, and its text between brackets; an empty list stays."""
    text, _ = amended(BLOCK, {}, "a.test:443 c.test e.test", prune=True)
    assert text == BLOCK.replace("      - a.test:443      # the API\n", "").replace(
        "      - host: c.test\n        methods: [GET]   # read\n", ""
    ).replace("[e.test, ", "[")
    text, _ = amended(BLOCK, {}, "f.test g.test", prune=True)
    assert "    allow: [e.test]\n    ask: []\n" in text
    text, _ = amended(BLOCK, {}, "e.test f.test", prune=True)
    assert "    allow: []\n" in text
    text, _ = amended(BLOCK, {}, "a.test:443 b.test:443 c.test @npm", prune=True)
    assert "    allow: []\n\n    deny:\n" in text
    assert rules(text) == ["install allow e.test", "install allow f.test", "install ask g.test", "runtime deny d.test"]


def test_pruning_and_adding_go_together() -> None:
    """JRN-7: a list that loses all of its entries and gets another has that one."""
    text, _ = amended(BLOCK, ONE, "a.test:443 b.test:443 c.test @npm", prune=True)
    assert "    allow:\n      - new.test:443  # x1\n" in text
    text, _ = amended(BLOCK, {"install": {"allow": [Item("x.test")]}}, "e.test f.test", prune=True)
    assert '    allow: ["x.test"]\n' in text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("default: deny\n", "default: deny\nnetwork:\n  runtime:\n    allow:\n      - new.test:443  # x1\n"),
        ("default: deny", "default: deny\nnetwork:\n  runtime:\n    allow:\n      - new.test:443  # x1\n"),
        (
            "network:\n  install:\n    allow:\n    - a.test\n# end\n",
            (
                "network:\n  install:\n    allow:\n    - a.test\n"
                "  runtime:\n    allow:\n      - new.test:443  # x1\n# end\n"
            ),
        ),
        (
            "network:\n  runtime:\n    deny:\n      - a.test # no\ntls: any\n",
            "network:\n  runtime:\n    deny:\n      - a.test # no\n    allow:\n      - new.test:443  # x1\ntls: any\n",
        ),
        ("network: {runtime: {allow: []}}\n", 'network: {runtime: {allow: ["new.test:443"]}}\n'),
        ("network: {runtime: {allow: [a.test]}}\n", 'network: {runtime: {allow: [a.test, "new.test:443"]}}\n'),
        ("network: {runtime: {}}\n", 'network: {runtime: {"allow": ["new.test:443"]}}\n'),
        ("network: {}\ndefault: deny\n", 'network: {"runtime": {"allow": ["new.test:443"]}}\ndefault: deny\n'),
        (
            '{"network": {"install": {"allow": ["a.test"]}}}\n',
            '{"network": {"install": {"allow": ["a.test"]}, "runtime": {"allow": ["new.test:443"]}}}\n',
        ),
        (
            "network:\n  runtime:\n    allow: [\n      a.test,  # one\n    ]\n",
            'network:\n  runtime:\n    allow: [\n      a.test, "new.test:443",  # one\n    ]\n',
        ),
        (
            "network:\n  runtime:\n    allow:\n    - a.test\n    - b.test\n",
            "network:\n  runtime:\n    allow:\n    - a.test\n    - b.test\n    - new.test:443  # x1\n",
        ),
        (
            "network:\n    runtime:\n        allow:\n            - \u00fc.test  # \u00e4\n",
            (
                "network:\n    runtime:\n        allow:\n"
                "            - \u00fc.test  # \u00e4\n            - new.test:443  # x1\n"
            ),
        ),
    ],
)
def test_every_form_of_a_policy_takes_an_entry(before: str, after: str) -> None:
    """JRN-7: lists of lines and of brackets, what is not there yet, JSON, and a text without a last line's end."""
    text, _ = amended(before)
    assert text == after
    assert "runtime allow new.test:443" in rules(text)


def test_lines_may_end_as_elsewhere() -> None:
    """JRN-7: a text with CR LF keeps them where it has them, and loads."""
    text, _ = amended("network:\r\n  runtime:\r\n    allow:\r\n      - a.test\r\n", ONE, "a.test")
    assert rules(text) == ["runtime allow a.test", "runtime allow new.test:443"]
    assert "a.test  # not used by these tasks" in text


@pytest.mark.parametrize(
    "text",
    [
        "network:\n  install: &x\n    allow: [a.test]\n  runtime: *x\n",
        "network:\n  install: {allow: &x [a.test]}\n  runtime: {allow: *x}\n",
        '{"default": "deny"}\n',
    ],
)
def test_a_form_that_is_not_edited_is_an_error_and_no_other_policy(text: str) -> None:
    """JRN-7: where one list stands for two phases, an entry for one would be in both; nothing comes out."""
    with pytest.raises(AmendError) as caught:
        amended(text)
    assert caught.value.what


def test_narrowed_entries_are_added_as_such() -> None:
    """JRN-7, INS-6: methods and paths come along in both forms."""
    items = {"runtime": {"allow": [Item("n.test:443", ("GET",), ("/a/**",), note="x")]}}
    block, _ = amended(BLOCK, items)
    assert '      - {host: "n.test:443", methods: [GET], paths: ["/a/**"]}  # x\n' in block
    flow, _ = amended("network: {runtime: {allow: [a.test]}}\n", items)
    assert '[a.test, {"host": "n.test:443", "methods": ["GET"], "paths": ["/a/**"]}]' in flow


NAMES = st.sampled_from(["a.test", "b.test:443", "**.c.test", "@npm", "1.2.3.4:53", "[::5]:443", "d.test"])
FORMS = st.sampled_from(["block", "indentless", "flow", "mapping", "json"])
ITEMS = st.lists(NAMES, max_size=4, unique=True)
LISTS = st.fixed_dictionaries({}, optional={"allow": ITEMS, "ask": ITEMS, "deny": ITEMS})
NETWORKS = st.fixed_dictionaries({}, optional={"install": LISTS, "runtime": LISTS})


def _written(network: dict[str, dict[str, list[str]]], form: str, comments: bool) -> str:
    if form == "json":
        return json.dumps({"default": "deny", "network": network}, indent=2) + "\n"
    lines = ["default: deny", "network:" if network else "network: {}"]
    for phase, lists in network.items():
        lines.append(f"  {phase}:" if lists else f"  {phase}: {{}}")
        for verdict, items in lists.items():
            if form == "flow" or not items:
                lines.append(f"    {verdict}: [{', '.join(map(quoted, items))}]" + ("  # here" if comments else ""))
                continue
            lines.append(f"    {verdict}:")
            for item in items:
                dash = "    -" if form == "indentless" else "      -"
                host = f"host: {quoted(item)}" if form == "mapping" else quoted(item)
                lines += ["", "      # about it"] if comments else []
                lines.append(f"{dash} {host}" + (" # why" if comments else ""))
    return "\n".join([*lines, "tls: any"]) + "\n"


@settings(max_examples=100, deadline=None)
@given(
    NETWORKS, FORMS, st.booleans(), st.sets(st.integers(0, 11)), st.booleans(), st.sampled_from(["install", "runtime"])
)
def test_any_policy_comes_out_as_meant(
    network: dict[str, dict[str, list[str]]], form: str, comments: bool, gone: set[int], prune: bool, phase: str
) -> None:
    """JRN-7: of random policies in every form, what comes out has what was there, less what went, and the new."""
    text = _written(network, form, comments)
    found = Text(text.encode(), "p")
    entries = found.entries()
    unused = [entry for at, entry in enumerate(entries) if at in gone]
    out, _ = found.amended({phase: {"allow": [Item("new.test:1", note="x")]}}, {one.at for one in unused}, prune=prune)
    left = [f"{entry.phase} {entry.text}" for entry in entries if not (prune and entry in unused)]
    after = [f"{entry.phase} {entry.text}" for entry in Text(out.encode(), "p").entries()]
    assert sorted(after) == sorted([*left, f"{phase} new.test:1"])
    if form != "json" and comments:
        assert out.count("# about it") == text.count("# about it")
