"""What the watcher of a task without namespaces answers, asked from inside a real hold."""

from __future__ import annotations

from tests.holds import held
from tests.unit.holds.apart import apart

HEAD = """
import errno, json, os, socket, ctypes
LIBC = ctypes.CDLL(None, use_errno=True)
HELD = json.loads(os.environ['HELD'])
def attempt(call, *arguments):
    try: return call(*arguments)
    except OSError as error: return errno.errorcode[error.errno]
"""


def inside(program: str, **wishes: object) -> str:
    """What this program prints in the hold."""
    answer = held.hold("landlock", [held.PYTHON, "-I", "-c", HEAD + program], **wishes)
    assert answer.get("status") == 0, answer
    return str(answer["out"])


def test_only_the_gate_can_be_reached() -> None:
    """By either family; every other address fails as if nothing were there (HLD-2)."""
    out = inside(
        """
for address in ('127.0.0.1', '127.0.0.2', '0.0.0.0', '10.0.0.1', '1.2.3.4'):
    print(address, *(attempt(socket.socket().connect, (address, port)) for port in (HELD['port'], 80)))
for address in ('::ffff:127.0.0.1', '::1', '2600:beef::1'):
    print(address, attempt(socket.socket(socket.AF_INET6).connect, (address, HELD['port'])))
wire = socket.socket()
print(LIBC.connect(wire.fileno(), bytes(16), 16), errno.errorcode[ctypes.get_errno()])
"""
    )
    refused, away = "ECONNREFUSED", "ENETUNREACH"
    assert out.splitlines() == [
        f"127.0.0.1 None {refused}",
        f"127.0.0.2 {refused} {refused}",
        f"0.0.0.0 {refused} {refused}",
        f"10.0.0.1 {away} {away}",
        f"1.2.3.4 {away} {away}",
        "::ffff:127.0.0.1 None",
        f"::1 {refused}",
        f"2600:beef::1 {away}",
        "-1 EAFNOSUPPORT",
    ]


def test_servers_are_the_unix_ones_with_a_path() -> None:
    """No bind and no listen on INET, with a bind or without; no abstract names; a path serves (HLD-2, HLD-14)."""
    out = inside(
        """
print(attempt(socket.socket().bind, ('127.0.0.1', 0)), *(attempt(socket.socket(kind).listen) for kind in (2, 10)))
abstract = HELD['unix_abstract'].replace('@', '\\0')
print(attempt(socket.socket(1).bind, '\\0name'), attempt(socket.socket(1).connect, abstract))
server = socket.socket(1); server.bind('s'); server.listen()
client = socket.socket(1); client.connect('s'); print(client.getpeername(), server.accept()[1] == '')
print(attempt(socket.socket(1).connect, HELD['late_work']))
print([name for _number, name in socket.if_nameindex()][:1])
"""
    )
    assert out == "EACCES EACCES EACCES\nEACCES ECONNREFUSED\ns True\nECONNREFUSED\n['lo']\n"


def test_terminals_and_limits() -> None:
    """A pty of the task's own, though no name of one is given; limits of its own processes, and of no other's."""
    out = inside(
        """
import resource, tty
master, slave = os.openpty(); tty.setraw(slave); os.write(master, b'x'); print(os.read(slave, 1))
before = resource.prlimit(os.getpid(), resource.RLIMIT_CORE, (0, 0))
print(resource.getrlimit(resource.RLIMIT_CORE), len(before))
print(attempt(resource.prlimit, os.getppid(), resource.RLIMIT_DATA, (1 << 40, 1 << 40)))
"""
    )
    assert out == "b'x'\n(0, 0) 2\nEPERM\n"


def test_files_are_changed_by_every_call() -> None:
    """What tools do in a workspace with a repository: it works, and what is protected stays (HLD-15)."""
    script = (
        "mkdir -p a/b && echo x > a/b/c && cp a/b/c top && chmod 600 top && touch -d 2001-01-01 top && ln top link"
        " && ln -s top way && mv a z && rm -r z && cp /bin/true ./run && ./run && stat -c %a top && cat way"
        "; mv src other; rm pyproject.toml; echo y > src/code.py; chmod 777 src/code.py; echo done"
    )
    answer = held.hold("landlock", ["/bin/sh", "-c", script])
    assert answer["out"].startswith("600\nx\n"), answer
    assert answer["out"].count("ermission denied") == 4, answer["out"]
    assert answer["out"].count("cannot create src/code.py") == 1


def test_it_waits_for_a_gate_that_takes_no_word_until_the_front_says_so() -> None:
    """HLD-7: all of the task's calls wait for the watcher; a gate that only is slow is waited for as ever."""
    code = """
    import select, threading, time
    from tidegate.holds import control
    from tidegate.holds.landlock_pause import Pause
    from tidegate.holds.landlock_watcher import LandlockWatcher, Post
    gate, end = control.pair()
    pause = Pause(1)
    watcher = LandlockWatcher(os.pipe()[0], Post(1, end, (), (), pause), 1, 1)
    while watcher._tell(b'tried'):
        pass
    threading.Timer(0.3, lambda: [os.read(gate, 100) for _ in range(100)]).start()
    print(watcher._tell(b'here', wait=True))
    while watcher._tell(b'tried'):
        pass
    threading.Timer(0.3, lambda: pause.shut(1, shut=True)).start()
    print(watcher._tell(b'here', wait=True))
    """
    assert apart(code) == "True\nFalse\n"
