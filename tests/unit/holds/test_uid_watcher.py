"""What the watcher of the hold `uid` lets a task do with its own servers, and with the machine's."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import textwrap

import pytest

from tests.holds import held
from tests.unit.holds.uid_apart import NEEDS_ROOT, fenced

pytestmark = NEEDS_ROOT


def python(code: str, **wishes: object) -> dict[str, object]:
    """Hold a piece of Python."""
    return held.hold("uid", [held.PYTHON, "-c", textwrap.dedent(code)], **wishes)


def test_a_task_reaches_its_own_servers() -> None:
    """On every loopback address and in both families, again after a restart of the server (HLD-3, B84)."""
    answer = python("""
        import socket
        for family, at in ((2, '127.0.0.1'), (10, '::1'), (2, '127.9.9.9'), (2, '127.0.0.1')):
            with socket.create_server((at, 0), family=family) as server:
                with socket.create_connection(server.getsockname()[:2], 5) as client:
                    there, _ = server.accept()
                    client.sendall(b'ping')
                    there.sendall(there.recv(9)[::-1])
                    print(client.recv(9))
                    there.close()
        """)
    assert answer["out"] == "b'gnip'\n" * 4, answer


def test_servers_that_have_ended_leave_room_for_others() -> None:
    """A thousand servers one after the other, and the first one still there: each is reached (HLD-3)."""
    code = """
        import socket
        kept = socket.create_server(('127.0.0.1', 0))
        reached = 0
        for _ in range(1100):
            with socket.create_server(('127.0.0.1', 0)) as server:
                socket.create_connection(server.getsockname(), 5).close()
                reached += 1
        socket.create_connection(kept.getsockname(), 5).close()
        print(reached)
    """
    assert python(code)["out"] == "1100\n"


def test_a_task_reaches_its_own_abstract_sockets_and_not_the_machines() -> None:
    """An abstract name is the machine's: one that the task listens at is its own, another is refused (HLD-14, B85)."""
    answer = python("""
        import json, os, socket
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(b'\\0tidegate-own-%d' % os.getpid())
            server.listen()
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(server.getsockname())
                print('own')
        theirs = json.loads(os.environ['HELD'])['unix_abstract']
        try:
            socket.socket(socket.AF_UNIX).connect('\\0' + theirs[1:])
        except OSError as error:
            print(error.strerror)
        """)
    assert answer["out"] == "own\nConnection refused\n", answer
    assert answer["heard"] == []


ACTS = [
    *("nft delete table inet tidegate", "nft flush ruleset", "nft flush chain inet tidegate task"),
    *("ip rule del pref 3128", "ip -6 rule del pref 3128", "ip route flush table 3128", "ip rule flush"),
    *("ip -6 route flush table 3128", "ip address del 198.18.0.1/32 dev lo"),
]


@pytest.mark.parametrize("act", ACTS)
def test_a_task_is_ended_when_its_table_is_changed(act: str) -> None:
    """HLD-7: within a second, by SIGKILL, whatever the task does; it never has more than before."""
    base = held.new_base()
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"
    wishes = {"hold": "uid", "argv": [held.PYTHON, "-c", code], "wait_for_death": True}
    runner = subprocess.Popen(held.command("root", base, wishes), stdout=subprocess.PIPE, text=True)
    try:
        assert runner.stdout is not None
        pids = json.loads(runner.stdout.readline())
        done = subprocess.run(
            ["nsenter", f"--net=/proc/{pids['front']}/ns/net", *act.split()],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        answer = json.loads(runner.stdout.read())
        assert os.WTERMSIG(answer["init_status"]) == signal.SIGKILL
    finally:
        runner.kill()
        runner.communicate()
        shutil.rmtree(base, ignore_errors=True)


def test_no_connection_is_made_in_the_absence_of_the_table() -> None:
    """HLD-7: a task that connects in a loop gets none after the table was removed; it is ended instead."""
    code = """
    from tidegate.holds.uid_watcher import TABLE_GONE, UidWatcher
    watch = uid_watch.TableWatch()
    watch.know(uid_watch.look())
    task = os.fork()
    if task == 0:
        import time
        time.sleep(60)
    watcher = UidWatcher.__new__(UidWatcher)
    watcher._table, watcher._init = watch, os.pidfd_open(task)
    place = bytes((2, 0, 0, 9, 127, 0, 0, 1)) + bytes(8)
    print(watcher._judged(0, -1, place, unix=False) == place)
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        uid_fence.run(('flush', 'ruleset'))
        watcher._judged(0, -1, place, unix=False)
        os._exit(0)
    print(os.waitpid(child, 0)[1] >> 8 == TABLE_GONE, os.waitpid(task, 0)[1])
    """
    assert fenced(code) == "True\nTrue 9\n"
