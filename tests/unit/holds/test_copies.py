"""copies.py: whose descriptor it is that is copied, with real processes and numbers that are used again."""

from __future__ import annotations

from tests.unit.holds.apart import apart

COPYING = """
    from tidegate.holds.copies import MOST, Copies
    asked = []
    copies = Copies(asked.append)
    def child(path, number=9):
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.dup2(os.open(path, os.O_RDONLY), number)
            os.write(writing, b'x')
            os.read(os.pipe()[0], 1)
        os.read(reading, 1)
        os.close(reading)
        os.close(writing)
        return pid
    def end(pid):
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    def seen(pid, number=9):
        copy = copies.take(1, pid, number)
        try:
            return os.readlink(f'/proc/self/fd/{copy}')
        finally:
            os.close(copy)
"""


def test_a_copy_is_of_who_asks_each_time() -> None:
    """HLD-14: the second copy is made by the handle of the first, and is of what the caller has by then."""
    code = f"""{COPYING}
    first, second = child('/etc/passwd'), child('/etc/group')
    print(seen(first), seen(second), seen(first), seen(second))
    print(len(asked), attempt(copies.take, 1, first, 77), seen(first))
    end(first)
    end(second)
    print(attempt(copies.take, 1, first, 9))
    """
    lines = apart(code).splitlines()
    assert lines[0] == "/etc/passwd /etc/group /etc/passwd /etc/group"
    assert lines[1] == "2 EBADF /etc/passwd"
    assert lines[2] == "ESRCH"


def test_a_number_that_is_anothers_by_now_leads_to_the_other() -> None:
    """HLD-14: a handle that was kept is of nobody once its thread has ended; who has its number now is asked for anew.

    Its neighbour that still lives is not asked for again.
    """
    code = f"""{COPYING}
    inside(linux.CLONE_NEWPID, root=True)
    if os.fork() == 0:
        first = child('/etc/passwd')
        was = seen(first)
        end(first)
        with open('/proc/sys/kernel/ns_last_pid', 'w') as file:
            file.write(str(first - 1))
        second = child('/etc/group')
        print(first == second, was, seen(second), seen(second), len(asked), flush=True)
        end(second)
        os._exit(0)
    os.wait()
    """
    assert apart(code).split() == ["True", "/etc/passwd", "/etc/group", "/etc/group", "2"]


def test_who_is_gone_when_it_is_asked_for_gets_no_copy() -> None:
    """HLD-14: nothing is taken of a number that may be another's, and no handle stays."""
    code = f"""{COPYING}
    def gone(identity):
        raise OSError(errno.ENOENT, 'gone')
    pid = child('/etc/passwd')
    copies = Copies(gone)
    before = len(os.listdir('/proc/self/fd'))
    print(attempt(copies.take, 1, pid, 9), len(os.listdir('/proc/self/fd')) == before)
    end(pid)
    """
    assert apart(code).split() == ["ENOENT", "True"]


def test_handles_are_bounded() -> None:
    """A task of many threads has so many handles open here and no more."""
    code = f"""{COPYING}
    pids = [child('/etc/passwd') for _ in range(MOST + 2)]
    most = 0
    for pid in pids:
        seen(pid)
        most = max(most, len(copies._handles))
    print(most == MOST, len(copies._handles))
    for pid in pids:
        end(pid)
    """
    assert apart(code).split() == ["True", "2"]
