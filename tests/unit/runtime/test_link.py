"""tidegate.runtime.link: the conversation, with the other end in the test's hand."""

from __future__ import annotations

import json
from _socket import socket, socketpair
from collections.abc import Iterator
from typing import Any

import pytest

from tidegate.model.errors import StartError
from tidegate.runtime.link import Link


class _Plain(Link):
    """A link whose other end is the test's."""

    def dumps(self, value: Any) -> bytes:
        return json.dumps(value).encode()

    def loads(self, data: bytes) -> Any:
        return json.loads(data)


def _frame(value: Any) -> bytes:
    body = json.dumps(value).encode()
    return len(body).to_bytes(4, "big") + body


@pytest.fixture
def ends() -> Iterator[tuple[_Plain, socket, list[str]]]:
    """A link, its other end, and what it warned of."""
    ours, theirs = socketpair()
    warned: list[str] = []
    yield _Plain(ours, warned.append), theirs, warned
    ours.close()
    theirs.close()


def test_an_end_from_outside_says_why_and_keeps_the_counts(ends: tuple[_Plain, socket, list[str]]) -> None:
    """HLD-8: `task end` is told apart from a gate that is gone, and the summary that follows is not lost."""
    link, gate, warned = ends
    data = _frame(["warn", "w"]) + _frame(["end", "because"]) + _frame(["summary", [["row"]], 2])
    said = [link.heard(data[index : index + 1]) for index in range(len(data))]
    assert [why for why in said if why] == ["tidegate: because"]
    assert warned == ["w"]
    gate.close()
    assert link.finish() == ([["row"]], 2)


def test_counts_that_were_sent_before_the_end_are_read_after_it(ends: tuple[_Plain, socket, list[str]]) -> None:
    """JRN-1: a gate that said its last word and went has said it."""
    link, gate, _warned = ends
    gate.sendall(_frame(["summary", [], 1]))
    gate.close()
    assert link.finish() == ([], 1)


def test_a_gate_that_went_without_a_word_has_no_counts(ends: tuple[_Plain, socket, list[str]]) -> None:
    """HLD-7: then the journal is what is known."""
    link, gate, _warned = ends
    gate.close()
    link.begin(1.0)
    assert link.finish() is None


def test_what_is_known_already_is_not_waited_for(ends: tuple[_Plain, socket, list[str]]) -> None:
    """An `exec` has had its answer before the hold is built."""
    link, gate, _warned = ends
    gate.sendall(_frame(["ready"]) + _frame(["serving"]) + _frame(["serving"]))
    link.confirm_known()
    link.confirm()
    link.confirm_next()
    gate.sendall(_frame(["failed", "what", "fix", "code"]))
    with pytest.raises(StartError, match="what"):
        link.confirm()
    assert link.why_not() is not None
    gate.close()
    link.close()


def test_questions_are_heard_wherever_they_come_and_answers_sent(ends: tuple[_Plain, socket, list[str]]) -> None:
    """ASK-5: before the gate serves, while the command runs, and not where nobody asked for them."""
    link, gate, warned = ends
    gate.sendall(_frame(["asked", {"id": 1}]) + _frame(["ready", {}]))
    link.confirm_known()
    heard: list[Any] = []
    link.on_question = heard.append
    gate.sendall(_frame(["asked", {"id": 2}]) + _frame(["serving"]))
    link.confirm()
    assert link.heard(_frame(["closed", {"id": 2}])) == ""
    assert heard == [["asked", {"id": 2}], ["closed", {"id": 2}]]
    link.answer(2, "deny")
    link.unattended()
    assert gate.recv(1000) == _frame(["answer", 2, "deny"]) + _frame(["unattended"])
    assert warned == []
    gate.close()
    link.answer(2, "deny")
