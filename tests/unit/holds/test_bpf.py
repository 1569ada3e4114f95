"""The assembler: labels become distances, and what cannot be said is an error."""

from __future__ import annotations

import pytest

from tests.unit.holds.interpreter import run
from tidegate.holds import bpf


def program() -> bpf.Program:
    """Allow number 7; where its first argument has bit 2 of the low three, give errno 1; else errno 2."""
    p = bpf.Program()
    p.load(bpf.NUMBER)
    p.if_equal(7, "seven")
    p.if_at_least(100, "large", "small")
    p.label("seven")
    p.load(bpf.argument(0))
    p.mask(7)
    p.if_any_bit(4, "small")
    p.give(bpf.ALLOW)
    p.label("large")
    p.give(bpf.ERRNO | 2)
    p.label("small")
    p.give(bpf.ERRNO | 1)
    return p


@pytest.mark.parametrize(
    ("number", "argument", "answer"),
    [
        (7, 3, bpf.ALLOW),
        (7, 8, bpf.ALLOW),
        (7, 4, bpf.ERRNO | 1),
        (7, 0x1_0000_0003, bpf.ALLOW),
        (99, 0, bpf.ERRNO | 1),
        (100, 0, bpf.ERRNO | 2),
        (0xFFFFFFFF, 0, bpf.ERRNO | 2),
    ],
)
def test_instructions_do_what_they_say(number: int, argument: int, answer: int) -> None:
    """Comparisons, masks and jumps, at and just outside their edges (HLD-13)."""
    assert run(program().assemble(), number, 0, (argument,)) == answer


def test_labels_that_cannot_be_reached_are_errors() -> None:
    """A label that is missing, twice, behind or over 255 instructions away is refused."""
    p = bpf.Program()
    p.if_equal(1, "nowhere")
    with pytest.raises(ValueError, match="no such label"):
        p.assemble()
    p = bpf.Program()
    p.label("here")
    p.load(0)
    p.if_equal(1, "here")
    with pytest.raises(ValueError, match="behind"):
        p.assemble()
    with pytest.raises(ValueError, match="twice"):
        p.label("here")


@pytest.mark.parametrize(("between", "fits"), [(255, True), (256, False)])
def test_a_jump_reaches_255_instructions(between: int, fits: bool) -> None:
    """The kernel has eight bits for a distance; one more is an error and not another jump."""
    p = bpf.Program()
    p.load(bpf.NUMBER)
    p.if_equal(1, "end")
    for _ in range(between):
        p.give(bpf.KILL_PROCESS)
    p.label("end")
    p.give(bpf.ALLOW)
    if fits:
        assert run(p.assemble(), 1, 0) == bpf.ALLOW
    else:
        with pytest.raises(ValueError, match="too far"):
            p.assemble()
