"""What an answer means for one decision, and which ends it may have (ASK-2, ASK-7). Pure."""

from __future__ import annotations

from math import isfinite

from tidegate.model.grant import Grant
from tidegate.model.question import NO_TERMS, Answer, Terms
from tidegate.model.reason import Reason
from tidegate.model.verdict import Verdict
from tidegate.questions.errors import BadAnswerError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.model.decision import Decision
    from tidegate.model.question import Question
    from tidegate.questions.grants import Key


def key_of(task: str, decision: Decision) -> Key:
    """Return what a grant and a question are found by."""
    destination = decision.destination
    return task, decision.phase, destination.host.text, destination.port


def answered(decision: Decision, answer: Answer, number: int, by: str, terms: Terms) -> Decision:
    """Return the decision as a person's answer leaves it."""
    source = f"question {number}, answered by {by}"
    if not answer.allows:
        return decision.refuse(Reason.DENIED_BY_PERSON, fix="").replace(name="answered", source=source)
    return decision.replace(
        verdict=Verdict.ALLOW,
        reason=Reason.ALLOWED_BY_PERSON,
        name="remembered" if answer is Answer.REMEMBER else "answered",
        source=source,
        fix="",
        grant=Grant(number, terms.bytes),
    )


def of(question: Question) -> Key:
    """Return what a question is found by."""
    return question.task, question.phase, question.host, question.port


def refused(decision: Decision, reason: Reason, number: int) -> Decision:
    """Return a refusal. Where nobody answered it names the question: an answer to it is for the next try (B140)."""
    refusal = decision.refuse(reason)
    return refusal.replace(source=f"{decision.source}, question {number}") if reason is Reason.NOT_ANSWERED else refusal


def check_terms(answer: Answer, terms: Terms, wall: float) -> None:
    """See that an answer may have this end.

    Raises:
        BadAnswerError: where it may not.
    """
    if terms != NO_TERMS and answer not in {Answer.ALLOW, Answer.TASK}:
        raise BadAnswerError(
            f"the answer {answer.value!r} has no end of its own", fix="give an end with `allow` or `task`"
        )
    if terms.until is not None and not (isfinite(terms.until) and terms.until > wall):
        raise BadAnswerError("the end lies in the past", fix="give a later time")
    for what, count in (("connections", terms.connections), ("bytes", terms.bytes)):
        if count is not None and count < 1:
            raise BadAnswerError(f"{count} {what} are none at all", fix="give a number above 0, or answer `deny`")
