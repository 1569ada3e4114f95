"""What an answer means for one decision."""

from __future__ import annotations

import pytest

from tests.unit.questions.kit import wanted
from tidegate.model.question import NO_TERMS, Answer, Terms
from tidegate.model.reason import Reason
from tidegate.model.verdict import Phase, Verdict
from tidegate.questions.errors import BadAnswerError
from tidegate.questions.meaning import answered, check_terms, key_of


def test_the_key_is_canonical() -> None:
    """B145: the same host in another spelling has the same key."""
    assert key_of("t1", wanted("A.Test.:443")) == ("t1", Phase.RUNTIME, "a.test", 443)


@pytest.mark.parametrize("answer", list(Answer))
def test_a_decision_says_who_made_it(answer: Answer) -> None:
    """POL-6, ADR-2: verdict, reason, name and source come from the answer; the rule stays what it was."""
    asked = wanted("a.test:443", ask=("*.test",))
    decision = answered(asked, answer, 7, "alice", Terms(bytes=5))
    assert decision.verdict is (Verdict.ALLOW if answer.allows else Verdict.DENY)
    assert decision.reason is (Reason.ALLOWED_BY_PERSON if answer.allows else Reason.DENIED_BY_PERSON)
    assert decision.source == "question 7, answered by alice"
    assert decision.rule is asked.rule
    assert decision.fix == ""
    if answer.allows:
        assert decision.grant is not None
        assert (decision.grant.question, decision.grant.bytes) == (7, 5)
    else:
        assert decision.grant is None


def test_an_end_lies_ahead() -> None:
    """ASK-7: the moment itself is too late; a moment after is not."""
    check_terms(Answer.ALLOW, Terms(until=10.1), 10.0)
    check_terms(Answer.DENY, NO_TERMS, 10.0)
    with pytest.raises(BadAnswerError):
        check_terms(Answer.ALLOW, Terms(until=10.0), 10.0)
    with pytest.raises(BadAnswerError):
        check_terms(Answer.DENY, Terms(until=10.1), 10.0)
