"""The machine's network, which a task without namespaces shares: nothing of it but the gate can be reached (HLD-2)."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
import threading

from tidegate.doctor.escapes.rows.asked import connect, gate
from tidegate.doctor.escapes.table import HELD, LANDLOCK, escape, neighbour
from tidegate.doctor.escapes.tools import LIBC, PATIENCE, number, race, syscall, word, wrong

HERE = (LANDLOCK,)


def _address(port: int, host: str = "127.0.0.1") -> bytes:
    return struct.pack("=H", socket.AF_INET) + struct.pack(">H", port) + socket.inet_aton(host) + bytes(8)


def _connect(descriptor: int, address: bytes) -> None:
    syscall(number(42, 203), descriptor, address, len(address))


@escape("EACCES", holds=HERE)
def a_server_without_bind() -> None:
    """listen() gives a TCP socket a port of its own where it has none; Landlock does not see that."""
    for family in (socket.AF_INET, socket.AF_INET6):
        with socket.socket(family) as wire:
            try:
                wire.listen()
            except PermissionError as error:
                last = error
                continue
            wrong("it listens")
    raise last


@escape("EACCES", holds=HERE)
def a_name_among_the_abstract_ones() -> None:
    """The names are the machine's: who takes one could stand in for a service of it."""
    for name in (b"\0tidegate-own", b"\0/tmp/.X11-unix/X7", b""):
        with socket.socket(socket.AF_UNIX) as wire:
            try:
                wire.bind(name)
            except PermissionError as error:
                last = error
                continue
            wrong(f"{name!r} is taken")
    raise last


@escape("ECONNREFUSED", holds=HERE)
def the_gates_port_on_another_address() -> None:
    """Landlock's rule holds for a port on any address: each other one is refused all the same (HLD-2)."""
    for host in ("127.0.0.2", "0.0.0.0"):
        with socket.socket() as wire:
            try:
                wire.connect((host, HELD["port"]))
            except ConnectionRefusedError as error:
                last = error
                continue
            wrong(host)
    raise last


@escape("ENETUNREACH", holds=HERE)
def the_gates_port_elsewhere() -> None:
    """The same port of a public address, a private one and this machine's own."""
    for host in ("1.2.3.4", "10.1.2.3", HELD["own4"] or "10.0.0.1"):
        with socket.socket() as wire:
            try:
                wire.connect((host, HELD["port"]))
            except OSError as error:
                if error.errno != errno.ENETUNREACH:
                    raise
                last = error
                continue
            wrong(host)
    raise last


@escape("ECONNREFUSED", holds=HERE)
def exchanging_the_destination_while_it_is_judged() -> None:
    """A thread changes the address while the call is on its way: what was judged is what is called."""
    good, bad = _address(HELD["port"]), _address(HELD["tcp4"])
    address = ctypes.create_string_buffer(good, len(good))
    race(
        lambda: ctypes.memmove(address, bad, len(bad)),
        lambda: ctypes.memmove(address, good, len(good)),
        lambda fd: LIBC.connect(fd, address, len(good)),
    )
    _connect(socket.socket().detach(), bad)


@escape("ECONNREFUSED", holds=HERE)
def exchanging_the_socket_while_it_is_judged() -> None:
    """A thread puts another socket where the judged one was: the watcher has its own copy (dup2)."""
    address = _address(HELD["tcp4"])
    kept = [socket.socket(socket.AF_UNIX).detach(), socket.socket(socket.AF_INET6).detach()]
    target = socket.socket().detach()

    def attempt(_fd: int) -> int:
        return int(LIBC.connect(target, address, len(address)))

    race(lambda: os.dup2(kept[0], target), lambda: os.dup2(kept[1], target), attempt, reaches=False)
    _connect(socket.socket().detach(), address)


@escape("EAFNOSUPPORT", holds=HERE)
def taking_a_connection_apart() -> None:
    """connect() with AF_UNSPEC frees a socket that is connected to the gate, to go elsewhere."""
    with gate() as wire:
        _connect(wire.fileno(), bytes(16))


@escape("EISCONN", holds=HERE)
def connecting_twice() -> None:
    """A socket that has reached the gate goes nowhere else, and not there again."""
    with gate() as wire:
        for _ in range(2):  # the first only learns that it has come about
            _connect(wire.fileno(), _address(HELD["port"]))


@escape("ECONNREFUSED", holds=HERE)
def a_child_that_shares_memory() -> None:
    """Vfork's child, and a thread, ask the same watcher as anybody."""
    import subprocess

    done = subprocess.run(["/bin/true"], check=False, close_fds=False)
    if done.returncode:
        wrong("no child")
    said: list[int] = []

    def attempt() -> None:
        with socket.socket() as wire:
            said.append(wire.connect_ex(("127.0.0.1", HELD["tcp4"])))

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    raise OSError(said[0], "from a thread")


@escape("EPERM", holds=HERE)
def choosing_the_way_of_packets() -> None:
    """IP options with a source route: where a packet goes first would not be where it is connected to."""
    with socket.socket() as wire:
        wire.setsockopt(socket.IPPROTO_IP, 4, bytes((131, 7, 4)) + socket.inet_aton("1.2.3.4") + b"\0")


@escape("EPERM", holds=HERE)
def choosing_the_way_of_packets_by_ipv6() -> None:
    """A routing header likewise."""
    with socket.socket(socket.AF_INET6) as wire:
        wire.setsockopt(socket.IPPROTO_IPV6, 57, bytes(24))


@escape("EPIPE", "ENOTCONN", holds=HERE)
def sending_to_an_address() -> None:
    """sendto() and sendmsg() on a stream that is connected to nothing take no receiver."""
    with socket.socket() as wire:
        try:
            wire.sendmsg([word().encode()], [], socket.MSG_NOSIGNAL, ("127.0.0.1", HELD["tcp4"]))
        except BrokenPipeError:
            wire.sendto(word().encode(), socket.MSG_NOSIGNAL, ("127.0.0.1", HELD["tcp4"]))


@neighbour(holds=HERE)
def the_gate_by_every_manner() -> None:
    """By IPv4 and as an IPv4 address in IPv6, waiting and not, from a thread: it is the gate that answers."""
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::ffff:127.0.0.1")):
        for waits in (True, False):
            with socket.socket(family) as wire:
                wire.setblocking(waits)
                found = wire.connect_ex((host, HELD["port"]))
                if found not in (0, errno.EINPROGRESS):
                    raise OSError(found, host)
                wire.settimeout(PATIENCE)
                wire.sendall(connect("denied.test:443"))
                if not wire.recv(99).startswith(b"HTTP/1.1 403"):
                    wrong(f"no gate by {host}")


@neighbour(holds=HERE)
def a_service_by_the_proxy() -> None:
    """A service of this machine that a rule names: here it is the proxy's to reach."""
    with gate() as wire:
        wire.sendall(connect(f"localhost:{HELD['open_tcp4']}"))
        if not wire.recv(99).startswith(b"HTTP/1.1 200"):
            wrong("the proxy refused it")


@neighbour(holds=HERE)
def unix_sockets_by_path() -> None:
    """A server of the task's own in the workspace and in its temporary folder, and pairs."""
    for folder in (HELD["workspace"], os.environ["TMPDIR"], os.environ["XDG_RUNTIME_DIR"]):
        path = f"{folder}/own-{os.getpid()}.sock"
        with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
            server.bind(path)
            server.listen()
            client.connect(path)
            if (server.getsockname(), client.getpeername()) != (path, path):
                wrong("it has another name")
            os.unlink(path)
    for one in socket.socketpair():
        one.close()


@neighbour(holds=HERE)
def a_full_backlog_by_path() -> None:
    """A call that must wait waits, and holds up no other."""
    path = f"{os.environ['TMPDIR']}/full"
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(0)
    clients = [socket.socket(socket.AF_UNIX) for _ in range(4)]
    threads = [threading.Thread(target=client.connect, args=(path,)) for client in clients]
    for thread in threads:
        thread.start()
    unix_sockets_by_path()
    for _ in threads:
        server.accept()
    for thread in threads:
        thread.join()
