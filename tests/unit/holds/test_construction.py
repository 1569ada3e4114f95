"""construction.py: the front's half alone, with a child that says what a test wants (test_launch.py has both)."""

from __future__ import annotations

import pytest

from tests.unit.holds.apart import apart

BUILDING = """
    from tidegate.holds import control
    from tidegate.holds.construction import Construction, check_silence
    from tidegate.model.errors import StartError
    def left():
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return len(os.listdir('/proc/self/fd'))
        return 'a child'
    before = left()
    def begin(*said, deliver=None):
        ours, theirs = control.pair()
        child = os.fork()
        if child == 0:
            os.close(ours)
            for message, descriptors in said:
                control.send(theirs, message, descriptors)
            os._exit(0)
        os.close(theirs)
        return Construction(ours, child, deliver, None, {}, None)
    def outcome(made):
        try:
            return type(made.await_proof()).__name__
        except StartError as error:
            return error.code
"""


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("", "hold-ended"),
        ("('failed view 28 a mount', ()),", "hold-view"),
        ("('failed cwd 2 /gone', ()),", "hold-cwd"),
        ("('something else', (0,)), ('failed enter 1 x', ()),", "hold-enter"),
    ],
)
def test_a_child_that_fails_leaves_nothing(said: str, code: str) -> None:
    """Its own reason is the error, its silence is one, too; no process and no descriptor stays (HLD-7)."""
    text = f"""{BUILDING}
    made = begin({said})
    print(outcome(made))
    made.tear_down()
    print(left() == before)
    """
    assert apart(text).split() == [code, "True"]


def test_sockets_are_delivered_and_closed() -> None:
    """The gate is given the descriptors with their roles, and no copy stays with the front (HLD-7)."""
    text = f"""{BUILDING}
    made = begin(('sockets proxy met', (0, 1)), ('probed', ()), deliver=lambda sockets: print(*sockets.roles))
    print(outcome(made))
    made.tear_down()
    print(left() == before)
    """
    assert apart(text).split() == ["proxy", "met", "RunningTask", "True"]


def test_a_canary_that_heard_something_is_an_error() -> None:
    """A probe that came through the fence stops the start, silence does not (HLD-11)."""
    text = f"""{BUILDING}
    class Canaries:
        def __init__(self, heard):
            self.heard = lambda: heard
    check_silence(Canaries([]))
    try:
        check_silence(Canaries(['tcp']))
    except StartError as error:
        print(error.code)
    """
    assert apart(text) == "self-test\n"


def test_what_is_heard_early_is_done_in_its_turn() -> None:
    """A look keeps what nobody takes yet: sockets are delivered later, or closed; a failure is said later (HLD-7)."""
    text = f"""{BUILDING}
    def heard(made, count):
        while len(made._heard) < count:
            made.look()
        return made
    made = heard(begin(('sockets proxy met', (0, 1)), ('probed', ())), 2)
    made.take_by(lambda sockets: print(*sockets.roles))
    print(outcome(made))
    made.tear_down()
    print(left() == before)
    made = heard(begin(('sockets proxy met', (0, 1)), ('failed view 28 a mount', ())), 2)
    made.tear_down()
    print(left() == before)
    made = heard(begin(('failed view 28 a mount', ())), 2)
    print(outcome(made))
    made.tear_down()
    print(left() == before)
    """
    assert apart(text).split() == ["proxy", "met", "RunningTask", "True", "True", "hold-view", "True"]
