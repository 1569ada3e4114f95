"""Who answers for connect() and listen(), with a real filter and a real process behind it."""

from __future__ import annotations

from tests.unit.holds.apart import apart

WATCHED = """
    from tidegate.holds import capabilities, control, seccomp, watcher
    here, there = control.pair()
    child = os.fork()
    if child == 0:
        os.close(here)
        def inside_it():
            inside(linux.CLONE_NEWNET)
            capabilities.drop_all()
            capabilities.no_new_privileges()
            control.send(there, 'ready')
            control.receive(there)
            listener = seccomp.install(seccomp.program('offline'), listener=True)
            control.send(there, 'watch', (listener,))
            os.close(listener)
            os.chdir(sys.argv[1])
            task(there)
        try:
            inside_it()
        finally:
            os._exit(9)
    os.close(there)
    control.receive(here)
    found = userns.find(child)
    pid, to_watcher = watcher.start(found, [sys.argv[1] + '/shared'])
    control.send(here, 'found')
    word, (listener,) = control.receive(here)
    control.send(to_watcher, word, (listener,))
    os.close(listener)
    os.close(to_watcher)
"""
TASK = """
    import _socket
    def connect(path, kind=1):
        wire = _socket.socket(1, kind)
        try:
            wire.connect(path)
            return 'done'
        except OSError as error:
            return errno.errorcode[error.errno]
        finally:
            wire.close()
    def serve(path):
        wire = _socket.socket(1, 1)
        wire.bind(path)
        wire.listen(4)
        return wire
"""


def test_it_ends_with_the_last_process_of_the_task(tmp_path: object) -> None:
    """No process of the task is left, so nobody can ask: the watcher ends by itself (HLD-9)."""
    code = (
        TASK
        + """
    def task(wire):
        server = serve('own')
        print(connect('own'), flush=True)
        os._exit(0)
    """
        + WATCHED
        + """
    print(os.waitpid(child, 0)[1], os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    """
    )
    assert apart(code, str(tmp_path)) == "done\n0 0\n"


def test_without_it_every_call_fails(tmp_path: object) -> None:
    """The watcher is killed: connect() and listen() fail, nothing passes unseen (HLD-7, HLD-14)."""
    code = (
        TASK
        + """
    def task(wire):
        server = serve('own')
        control.send(wire, 'serves')
        control.receive(wire)
        print(connect('own'), attempt(server.listen, 1), flush=True)
        os._exit(0)
    """
        + WATCHED
        + """
    control.receive(here)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    control.send(here, 'killed')
    print(os.waitpid(child, 0)[1])
    """
    )
    assert apart(code, str(tmp_path)) == "ENOSYS ENOSYS\n0\n"


def test_what_is_not_understood_is_refused(tmp_path: object) -> None:
    """Descriptors that are none, addresses that are none, lengths out of bounds: the kernel's errno for each."""
    code = (
        TASK
        + """
    def task(wire):
        own = serve('own')
        kept, held = linux.address_of(b'\\1\\0own\\0' + bytes(130))
        stream = _socket.socket(1, 1).detach()
        for fd, address, length in (
            (-1, kept, 9), (99, kept, 9), (os.open('/dev/null', 0), kept, 9), (stream, 8, 9), (stream, kept, -1),
            (stream, kept, 129), (stream, kept, 128), (stream, kept, 111), (stream, kept, 2), (stream, kept, 0),
            (stream, kept, 4), (stream, kept, 110),
        ):
            print(attempt(linux.call, 'connect', fd, address, length), flush=True)
        print(attempt(linux.call, 'listen', -1, 1), attempt(linux.call, 'listen', os.open('/dev/null', 0), 1))
        sys.stdout.flush()
        os._exit(0)
    """
        + WATCHED
        + """
    os.waitpid(child, 0)
    """
    )
    said = apart(code, str(tmp_path)).split()
    assert said[:4] == ["EBADF", "EBADF", "ENOTSOCK", "EFAULT"]
    assert said[4:10] == ["EINVAL"] * 6
    assert said[10:12] == ["ENOENT", "done"]
    assert said[12:] == ["EBADF", "ENOTSOCK"]


def test_shared_sockets_and_no_others(tmp_path: object) -> None:
    """A socket of the machine is reached where it was shared, and beside it, or by another name, not (HLD-14, B85)."""
    code = (
        TASK
        + """
    os.mkdir(sys.argv[1] + '/shared')
    foreign = [serve(f'{sys.argv[1]}/{name}') for name in ('shared/agent', 'shared-not', 'foreign')]
    os.symlink('shared/agent', sys.argv[1] + '/way')
    os.symlink('../foreign', sys.argv[1] + '/shared/out')
    def task(wire):
        print(*(connect(name) for name in ('shared/agent', 'way', 'shared/../shared/agent')), flush=True)
        print(*(connect(name) for name in ('shared-not', 'foreign', 'shared/out', 'shared/../foreign')), flush=True)
        os._exit(0)
    """
        + WATCHED
        + """
    os.waitpid(child, 0)
    """
    )
    assert apart(code, str(tmp_path)) == "done done done\n" + " ".join(["ECONNREFUSED"] * 4) + "\n"


def test_a_met_place_leads_elsewhere_only_where_nobody_listens(tmp_path: object) -> None:
    """HLD-10: the watcher connects to the task's own server, and to what stands for the place when there is none."""
    code = (
        """
    import _socket
    from tidegate.holds import inside as addresses, network
    def say(port, where):
        wire = _socket.socket(2, 1)
        try:
            wire.connect(('127.0.0.1', port))
            return where[wire.getpeername()[0]]
        except OSError as error:
            return errno.errorcode[error.errno]
        finally:
            wire.close()
    def task(wire):
        where = {'127.0.0.1': 'own', addresses.met_at(0): 'met'}
        first = say(5432, where)
        server = _socket.socket(2, 1)
        server.setsockopt(1, 2, 1)
        server.bind(('0.0.0.0', 5432))
        server.listen(4)
        second = say(5432, where)
        server.close()
        print(first, second, say(5432, where), say(5433, where), flush=True)
        os._exit(0)
    """
        + WATCHED.replace("'offline'", "'netns'")
        .replace(
            "capabilities.drop_all()", "network.raise_loopback(); held = network.listen(3128, addresses.met_at(0))"
        )
        .replace("+ '/shared'])", "+ '/shared'], addresses.detours((('localhost', 5432),), 3128))")
        + """
    os.waitpid(child, 0)
    """
    )
    assert apart(code, str(tmp_path)) == "met own met ECONNREFUSED\n"


def test_many_calls_that_wait_keep_neither_a_processor_nor_the_others(tmp_path: object) -> None:
    """Two hundred wait for a full backlog: each further call is answered, and each that waited in the end (HLD-14).

    How often those that wait are tried again does not grow with them, nor with the calls of others.
    """
    code = (
        TASK
        + """
    import threading
    def task(wire):
        full = _socket.socket(1, 1)
        full.bind('full')
        full.listen(0)
        got = []
        threads = [threading.Thread(target=lambda: got.append(connect('full'))) for _ in range(200)]
        for thread in threads:
            thread.start()
        print({connect('none') for _ in range(200)}, flush=True)
        for _ in threads:
            _socket.socket(fileno=full._accept()[0]).close()
        for thread in threads:
            thread.join()
        print(len(got), set(got), flush=True)
        os._exit(0)
    """
        + WATCHED
        + """
    os.close(here)
    os.waitpid(child, 0)
    print(os.waitpid(pid, 0)[1])
    few, many = (watcher.Watcher.__new__(watcher.Watcher) for _ in range(2))
    one = watcher.Waiting(-1, b'', -1, 0.0, errno.EAGAIN)
    few._waiting, many._waiting = ({number: one for number in range(count)} for count in (1, watcher.MAX_WAITING))
    print(few._patience(), many._patience() > 20 * few._patience())
    """
    )
    assert apart(code, str(tmp_path)) == "{'ENOENT'}\n200 {'done'}\n0\n5 True\n"
