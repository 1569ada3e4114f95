"""tidegate.runtime.early_hold: which launch takes what was begun. Whole runs are in tests/unit/cli/test_run.py."""

from __future__ import annotations

from typing import Any

from tidegate.holds.hold import LaunchSpec
from tidegate.holds.plan import TEMPORARY
from tidegate.runtime.early_hold import SEEN, EarlyHold

SPEC = LaunchSpec(argv=("true",), env={"HOME": "/home/a", "A": "1"}, cwd="/")


class Plain:
    """A hold that cannot be begun early; it notes what is asked of it."""

    def __init__(self) -> None:
        self.done: list[Any] = []

    def launch(self, spec: LaunchSpec, _deliver: object) -> str:
        self.done.append(("launch", spec.env, spec.trust))
        return "launched"


class Early(Plain):
    """One that can."""

    def begin(self, spec: LaunchSpec) -> Early:
        self.done.append(("begin", spec.env))
        return self

    def look(self) -> None:
        self.done.append("look")

    def complete(self, _deliver: object, env: object, trust: object) -> str:
        self.done.append(("complete", env, trust))
        return "completed"

    def end(self) -> None:
        self.done.append("end")


def test_a_hold_that_cannot_be_begun_is_launched() -> None:
    """HLD-1: what is begun early is an offer; every other hold is built when all is known."""
    hold = Plain()
    early = EarlyHold(hold)  # type: ignore[arg-type]
    early.begin(SPEC)
    early.look()
    assert early.launch(SPEC, lambda _made: None) == "launched"  # type: ignore[comparison-overlap]
    early.end()
    assert hold.done == [("launch", SPEC.env, ())]


def test_the_same_with_other_variables_and_trust_is_completed() -> None:
    """INS-2: only what does not decide the view may come late. A second launch is one of its own."""
    hold = Early()
    early = EarlyHold(hold)  # type: ignore[arg-type]
    early.begin(SPEC)
    early.look()
    final = SPEC.replace(env=SPEC.env | {"SSL_CERT_FILE": "/run/x"}, trust=(("/run/x", b"roots"),))
    assert early.launch(final, lambda _made: None) == "completed"  # type: ignore[comparison-overlap]
    assert early.launch(final, lambda _made: None) == "launched"  # type: ignore[comparison-overlap]
    early.end()
    assert hold.done[:3] == [("begin", SPEC.env), "look", ("complete", final.env, final.trust)]
    assert hold.done[3:] == [("launch", final.env, final.trust)]


def test_another_launch_is_not_what_was_begun() -> None:
    """HLD-7: where anything else differs, what was begun is ended and the hold is built as ever."""
    others = [{"cwd": "/srv"}, {"readonly": ("/a",)}, {"met": (("localhost", 1),)}, {"published": (80,)}]
    others += [{"env": SPEC.env | {name: "/else"}} for name in SEEN]
    for other in others:
        hold = Early()
        early = EarlyHold(hold)  # type: ignore[arg-type]
        early.begin(SPEC)
        assert early.launch(SPEC.replace(**other), lambda _made: None) == "launched"  # type: ignore[comparison-overlap]
        assert [one if isinstance(one, str) else one[0] for one in hold.done] == ["begin", "end", "launch"]


def test_what_was_begun_and_never_launched_is_ended() -> None:
    """HLD-7: whatever stops a start between, nothing of it stays; once."""
    hold = Early()
    early = EarlyHold(hold)  # type: ignore[arg-type]
    early.begin(SPEC)
    early.end()
    early.end()
    assert hold.done[1:] == ["end"]


def test_the_variables_of_the_view_are_those_of_the_plan() -> None:
    """HLD-14: the plan reads these and no others."""
    assert set(TEMPORARY) | {"HOME", "XDG_RUNTIME_DIR"} == set(SEEN)
