"""tidegate.runtime.ask_page: what a person reads before they press a key."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.runtime.ask_page import Standing, answers_of, clock, drawn, page, safe

NOW = Standing(1, 1, 899.4, ready=True)
FULL = {"a": "allow", "t": "task", "r": "remember", "d": "deny", "x": "deny-task"}


def question(**changes: Any) -> dict[str, Any]:
    """A question as the gate sends it."""
    return {
        "id": 7,
        "task": "20261130-000000-abcd",
        "folder": "/home/me/project",
        "host": "a.test",
        "label": "",
        "port": 443,
        "rule": "",
        "rule_name": "no-rule",
        "source": "profile balanced",
        "waiting": 2,
        "group": "",
        "warnings": [],
        "no_remember": "",
    } | changes


def shown(
    asked: dict[str, Any], standing: Standing = NOW, columns: int = 80, rows: int = 24, command: str = "npm i"
) -> str:
    """The page as text."""
    return "\n".join(text for text, _ in page(asked, command, standing, columns, rows).lines)


def test_everything_that_a_decision_needs_is_there() -> None:
    """ASK-1, ASK-5: host and port, task, folder, rule, how many wait, time left, each answer with its key."""
    text = shown(question())
    for part in (
        "   a.test:443",
        "20261130-000000-abcd  npm i",
        "/home/me/project",
        "no rule names it (profile balanced)",
        "2 connections",
        "14:59, then it is refused",
        " a  allow now",
        " t  allow for this task",
        " r  allow and remember for this folder",
        " d  deny",
        " x  deny for this task, and cut what is open",
    ):
        assert part in text
    assert "question 1" not in text
    assert "question 1 of 3" in shown(question(), Standing(1, 3, 10, ready=True))
    assert "rule *.test (mine, f:3)" in shown(question(rule="*.test", rule_name="mine", source="f:3"))
    assert "nobody now" in shown(question(waiting=0))


def test_the_last_line_says_whether_keys_count() -> None:
    """ASK-5: not at first, then they do, and not again while an answer is saved."""
    assert shown(question(), Standing(1, 1, 9, ready=False)).endswith("Keys count in a moment ...")
    assert shown(question(), Standing(1, 1, 9, ready=True)).endswith("Press a key. Ctrl-C interrupts the command.")
    assert shown(question(), Standing(1, 1, 9, ready=True, saving=True)).endswith("saving the answer ...")


def test_look_alikes_are_marked_and_the_name_stays_in_a_labels() -> None:
    """ASK-6: warnings stand out; the Unicode form is shown only where it is given."""
    asked = question(host="xn--e1aybc.test", warnings=["xn--e1aybc is made of letters that look like Latin ones"])
    lines = page(asked, "x", NOW, 80, 24).lines
    assert ("   ! xn--e1aybc is made of letters that look like Latin ones", "7") in lines
    assert ("   xn--e1aybc.test:443", "1") in lines
    assert "which reads bücher.test" in shown(question(host="xn--bcher-kva.test", label="bücher.test"))
    assert "many names under a.test" in shown(question(group="a.test"))


def test_what_cannot_be_remembered_has_no_key() -> None:
    """ASK-8: the reason in its place."""
    asked = question(no_remember="the home folder does not remember hosts")
    assert " r  allow" not in shown(asked)
    assert "not remembered: the home folder does not remember hosts" in shown(asked)
    assert answers_of(asked, whole=True) == {key: answer for key, answer in FULL.items() if key != "r"}
    assert answers_of(question(), whole=True) == FULL


@given(st.text(max_size=200), st.text(max_size=200), st.integers(1, 120), st.integers(1, 60))
def test_no_text_of_a_task_moves_anything(folder: str, command: str, columns: int, rows: int) -> None:
    """ASK-6: whatever folder and command are called, a page has no control or direction character, and fits."""
    made = page(question(folder=folder, command=command), command, NOW, columns, rows)
    assert len(made.lines) <= rows
    assert all(text.isprintable() for text, _ in made.lines)
    if not made.whole:
        assert all(len(text) <= columns for text, _ in made.lines)


@given(st.integers(1, 253), st.integers(1, 120), st.integers(1, 60))
def test_a_host_is_shown_whole_or_not_allowed(length: int, columns: int, rows: int) -> None:
    """ASK-6: no end of a name is hidden by a window: then only refusing is left."""
    host = ("abcdefghi." * 26)[:length]
    made = page(question(host=host), "x", NOW, columns, rows)
    bold = "".join(text.strip() for text, style in made.lines if style == "1")
    if made.whole:
        assert f"{host}:443" in bold
        assert all(len(text) <= columns for text, style in made.lines if style == "1" and "Press" not in text)
    else:
        assert answers_of(question(), whole=False) == {"d": "deny"}


def test_a_small_window_is_used_as_far_as_it_goes() -> None:
    """Empty lines go first; one row less than the rest needs, and only refusing is left."""
    full = len(page(question(), "x", NOW, 80, 50).lines)
    dense = len([text for text, _ in page(question(), "x", NOW, 80, 50).lines if text])
    assert page(question(), "x", NOW, 80, full).whole
    assert len(page(question(), "x", NOW, 80, full - 1).lines) == dense
    assert page(question(), "x", NOW, 80, dense).whole
    assert not page(question(), "x", NOW, 80, dense - 1).whole
    assert page(question(), "x", NOW, 26, 60).whole
    assert not page(question(), "x", NOW, 25, 60).whole


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00"), (-3, "0:00"), (9.9, "0:09"), (60, "1:00"), (899.9, "14:59"), (3599, "59:59"), (3600, "1:00:00")],
)
def test_time_as_a_clock_shows_it(seconds: float, text: str) -> None:
    """ASK-1: what is left, never more than there is."""
    assert clock(seconds) == text


def test_safe_text() -> None:
    """ASK-6: escapes, newlines, direction marks and broken file names are spelled out; the rest stays."""
    assert safe("a\x1b[31m\n\u202eb") == "a\\x1b[31m\\n\\u202eb"
    assert safe("bücher 本") == "bücher 本"
    assert safe("a\udcff") == "a\\udcff"


def test_drawing_ends_each_line_and_clears_the_rest() -> None:
    """A shorter line leaves nothing of the longer one before it."""
    text = drawn(page(question(), "x", NOW, 80, 24)).decode()
    assert text.startswith("\x1b[H\x1b[7m tidegate asks")
    assert text.endswith("\x1b[J")
    assert not text.endswith("\r\n\x1b[J")
