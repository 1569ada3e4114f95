"""begun.py: a hold that is built while it is still found out what its command's variables are and whom it trusts."""

from __future__ import annotations

from tests.unit.holds.apart import apart
from tests.unit.holds.test_launch import RUN

LATE = (
    RUN
    + """
    def tells(wire, spec, enter, test):
        told = spec.env.get('A'), *(open(path).read() for path in ('/run/tidegate/ca.pem', '/run/tidegate/two'))
        enter()
        test()
        control.send(wire, 'probed')
        control.receive(wire)
        os._exit(7 if told == ('late', 'roots', 'x' * 300000) else 1)
    def begin(finish=tells, **wishes):
        return launch.NamespaceHold('netns')._begin(spec(**wishes), finish, late=True)
    TRUST = (('/run/tidegate/ca.pem', b'roots'), ('/run/tidegate/two', b'x' * 300000), ('/nowhere/at/all', b'left out'))
"""
)


def test_what_comes_late_is_there_when_the_command_begins() -> None:
    """INS-2: variables and files of ours that were found out while the hold was built are those of the task."""
    code = (
        LATE
        + """
    begun = begin()
    for _ in range(3):
        begun.look()
    roles = []
    task = begun.complete(lambda made: roles.extend(made.roles), {'HOME': '/', 'A': 'late'}, TRUST)
    task.start()
    print(roles, os.waitstatus_to_exitcode(task.wait()))
    begun.end()
    print(left() == before)
    """
    )
    assert apart(code).splitlines() == ["['proxy'] 7", "True"]


def test_nothing_goes_on_without_it() -> None:
    """HLD-7: init that is not told the rest ends instead of going on with what it has, and so does a front's loss."""
    code = (
        LATE
        + """
    begun = begin()
    made = begun._construction
    while not (made._init and made._heard):  # all that it says before it waits: unread, that would be a reset
        made.look()
    os.close(made._wire)
    print(os.waitstatus_to_exitcode(os.waitpid(made._init, 0)[1]))
    """
    )
    assert apart(code) == "0\n"


def test_what_is_given_up_leaves_nothing() -> None:
    """HLD-7: whatever was begun by then, no process and no descriptor stays; a second end does nothing."""
    code = (
        LATE
        + """
    begun = begin()
    begun.end()
    begun.end()
    print(left() == before)
    begun = begin(selftest=True)
    while not begun._construction._heard:  # it has been mapped, or its sockets have come
        begun.look()
    begun.end()
    print(left() == before)
    """
    )
    assert apart(code) == "True\nTrue\n"


def test_a_failure_is_said_by_complete() -> None:
    """HLD-7: what goes wrong in the child before, at and after the rest is the error, and leaves nothing."""
    code = (
        LATE
        + """
    def fails(*arguments):
        raise OSError(12, 'x', 'move_mount')
    def tried(begun, early=False):
        try:
            while early and not begun._construction._heard:
                begun.look()  # which may say it already
            begun.complete(lambda made: None, {'HOME': '/'}, ())
        except StartError as error:
            begun.end()
            return error.code
    print(tried(begin(finish=fails)), left() == before)
    launch.network.raise_loopback = fails
    print(tried(begin(), early=True), left() == before)
    """
    )
    lines = apart(code).splitlines()
    assert [line.split()[1] for line in lines] == ["True", "True"]
    assert [line.split()[0] for line in lines] == ["hold-view", "hold-loopback"]
