"""What tests of questions need: decisions as the policy makes them, tasks, and a moment."""

from __future__ import annotations

from tidegate.model.decision import Decision
from tidegate.model.destination import parse_authority
from tidegate.model.question import FolderKey
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.decide import decide
from tidegate.policy.layers import command_line, join
from tidegate.policy.policy import Policy
from tidegate.questions.values import AskingTask, Moment

FOLDER = FolderKey("/w", 1, 2)
START = Moment(100.0, 1_000_000.0)


def policy(*ask: str) -> Policy:
    """Return the policy `balanced`, which asks for what it does not know, with rules that ask."""
    return join(command_line(ask=ask))


def wanted(authority: str, phase: Phase = Phase.RUNTIME, *, ask: tuple[str, ...] = ()) -> Decision:
    """Return the real decision of a policy that asks for this destination."""
    decision = decide(policy(*ask), parse_authority(authority), phase)
    assert decision.verdict is Verdict.ASK
    return decision


def task(name: str = "t1", *, wait: float = 900, folder: FolderKey = FOLDER, no_remember: str = "") -> AskingTask:
    """Return a task that may ask."""
    return AskingTask(name, folder, wait, no_remember)


def later(seconds: float, start: Moment = START) -> Moment:
    """Return the moment some seconds after."""
    return Moment(start.now + seconds, start.wall + seconds)
