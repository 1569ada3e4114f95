"""The table of a question's life, and its picture in the docs."""

from __future__ import annotations

import os

from tidegate.model.question import State
from tidegate.questions.table import OPEN, TRANSITIONS, Event, diagram

DOCS = os.path.join(os.path.dirname(__file__), "..", "..", "..", "docs", "questions.md")


def test_the_picture_in_the_docs_is_the_table() -> None:
    """DESIGN rule 9: the diagram of docs/questions.md is made from the table."""
    with open(DOCS, encoding="utf-8") as file:
        text = file.read()
    assert f"```mermaid\n{diagram()}\n```" in text


def test_what_is_closed_is_never_opened_again() -> None:
    """ASK-2, B140: a final state leads nowhere else, but for a late answer to what nobody had answered."""
    late = {(State.EXPIRED, Event.ANSWER): State.SAVING}
    for (before, event), after in TRANSITIONS.items():
        assert before in OPEN or after is before or late[before, event] is after


def test_every_state_is_reached_and_an_open_question_takes_every_event_but_a_save() -> None:
    """No state is dead, and no event of the world finds an open question without an entry."""
    assert set(TRANSITIONS.values()) == set(State)
    taken = {event for state, event in TRANSITIONS if state is State.OPEN}
    assert taken == set(Event) - {Event.SAVED, Event.NOT_SAVED}
    taken = {event for state, event in TRANSITIONS if state is State.SAVING}
    assert taken == set(Event) - {Event.ANSWER}
