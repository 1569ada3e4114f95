"""The front's half of a start: what it makes, it takes away again when the start fails."""

from __future__ import annotations

import pytest

from tests.unit.holds.apart import apart

RUN = """
    import signal
    from tidegate.holds import control, launch
    from tidegate.holds.hold import LaunchSpec
    from tidegate.model.errors import StartError
    def spec(**wishes):
        return LaunchSpec(**({'argv': ('true',), 'env': {'HOME': '/'}, 'cwd': '/', 'selftest': False} | wishes))
    def finish(wire, spec, enter, test):
        enter()
        test()
        control.send(wire, 'probed')
        control.receive(wire)
        os._exit(7)
    def left():
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return len(os.listdir('/proc/self/fd'))
        return 'a child'
    def tried(kind='netns', deliver=lambda made: None, finish=finish, **wishes):
        try:
            return launch.NamespaceHold(kind)._launch(spec(**wishes), deliver, finish)
        except StartError as error:
            return f'{error.code} {error.what}'
    before = left()
"""


def test_a_task_is_a_child_of_the_front_and_waits() -> None:
    """After launch init is there, a child of ours, and waits for a word (HLD-9)."""
    code = (
        RUN
        + """
    fds = []
    task = tried(deliver=lambda made: fds.extend((role, os.readlink(f'/proc/self/fd/{fd}').split(':')[0])
                                                         for role, fd in zip(made.roles, made.descriptors)))
    print(fds, os.waitpid(task.pid, os.WNOHANG))
    task.start()
    print(os.waitstatus_to_exitcode(task.wait()), left() == before)
    """
    )
    assert apart(code) == "[('proxy', 'socket')] (0, 0)\n7 True\n"


@pytest.mark.parametrize("kind", ["offline", "open"])
def test_without_a_gate_nothing_is_delivered(kind: str) -> None:
    """`offline` and `open` make no listener (HLD-5)."""
    code = (
        RUN
        + """
    task = tried(sys.argv[1], deliver=lambda made: print('delivered'))
    task.kill()
    task.wait()
    print(left() == before)
    """
    )
    assert apart(code, kind) == "True\n"


def test_a_start_that_fails_leaves_nothing() -> None:
    """Whatever fails, in the child, in the plan, or in our own caller: no process, no descriptor stays (HLD-7)."""
    code = (
        RUN
        + """
    def fails(*arguments):
        raise OSError(12, 'x', 'move_mount')
    def dies(wire, spec, enter, test):
        os.kill(os.getpid(), 9)
        os._exit(1)
    def raises(made):
        raise RuntimeError('no gate')
    print(tried(finish=fails), left() == before)
    print(tried(finish=dies), left() == before)
    print(tried(workspace='/tmp').split()[0], left() == before)
    try:
        tried(deliver=raises)
    except RuntimeError as error:
        print(error, left() == before)
    launch.userns.write_maps = fails
    print(tried().split()[0], left() == before)
    """
    )
    lines = apart(code).splitlines()
    assert lines[0].startswith("hold-view cannot set up the files")
    assert lines[1].startswith("hold-ended")
    assert lines[2] == "workspace True"
    assert lines[3] == "no gate True"
    assert lines[4] == "hold-map True"
    assert all(line.endswith("True") for line in lines)


def test_init_ends_when_the_front_lets_go() -> None:
    """Closing the control descriptor is enough to end the task (HLD-7)."""
    code = (
        RUN
        + """
    task = tried()
    os.close(task.control)
    print(os.waitstatus_to_exitcode(os.waitpid(task.pid, 0)[1]))
    """
    )
    assert apart(code) == "7\n"


def test_inherited_descriptors_and_handlers_are_gone_in_the_child() -> None:
    """Only what is kept is open in init; the front's handlers do not run there (HLD-13)."""
    code = (
        RUN
        + """
    inherited = os.open('/etc/passwd', os.O_RDONLY)
    os.set_inheritable(inherited, True)
    signal.signal(signal.SIGTERM, lambda *_: None)
    def look(wire, spec, enter, test):
        open_ones = [name for name in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{name}')]
        fine = len(open_ones) == 4 and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        enter()
        control.send(wire, 'probed')
        control.receive(wire)
        os._exit(0 if fine else 1)
    task = tried(finish=look)
    task.start()
    print(os.waitstatus_to_exitcode(task.wait()))
    """
    )
    assert apart(code) == "0\n"


def test_the_probe_finds_what_launch_would() -> None:
    """Where namespaces are used up, probe says so and raises nothing (HLD-12)."""
    code = (
        RUN
        + """
    print(launch.NamespaceHold('netns').probe(), left() == before)
    inside(0)
    with open('/proc/sys/user/max_net_namespaces', 'w') as file:
        file.write('0')
    print(launch.NamespaceHold('netns').probe().code, launch.NamespaceHold('open').probe())
    """
    )
    assert apart(code) == "None True\nhold-unshare None\n"


@pytest.mark.parametrize("slow", ["before the maps", "after the maps"])
def test_what_init_said_is_told_although_it_is_gone(slow: str) -> None:
    """HLD-7, HLD-12: init fails and ends before the front has written its maps, or said so: its own reason is told."""
    code = (
        RUN
        + """
    import time
    def fails(*arguments, **more):
        raise OSError(95, 'x', 'the nat chain capture')
    launch.capture.capture = fails
    write, fork = launch.userns.write_maps, os.fork
    def until_dead(pid):
        while open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[0] not in 'ZX':
            time.sleep(0.001)
    def late(pid):
        if sys.argv[1] == 'before the maps':
            until_dead(pid)
            raise PermissionError(13, 'x', '/proc/setgroups')
        write(pid)
        until_dead(pid)
    launch.userns.write_maps = late
    print(tried(capture='on'), left() == before)
    """
    )
    assert apart(code, slow).startswith("hold-capture this kernel cannot capture")
    assert apart(code, slow).endswith(" True\n")


def test_who_makes_the_namespaces_and_is_killed_before_it_said_so_leaves_nobody_waiting() -> None:
    """HLD-7: it has forked init and not named it to the front: init ends, and with it the start, where both waited."""
    code = (
        RUN
        + """
    send = control.send
    def killed(wire, message, descriptors=()):
        if message.startswith('unshared '):
            os.kill(os.getpid(), signal.SIGKILL)
        send(wire, message, descriptors)
    launch.control.send = killed
    print(tried())
    pid, ended = os.waitpid(-1, 0)  # the orphan, which is ours to reap
    print(os.waitstatus_to_exitcode(ended), left() == before)
    launch.control.send = send
    print(type(tried()).__name__)
    """
    )
    lines = apart(code).splitlines()
    assert lines[0].endswith("the first process of the task ended before the task could start")
    assert lines[1:] == ["0 True", "RunningTask"]
