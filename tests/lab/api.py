r"""What a test sees of the lab: `lab.dns`, `lab.origin`, `lab.raw`, and the addresses of the toy internet.

    def test_it(lab):
        lab.dns.set("a.test", A=["1.2.3.4"])
        origin = lab.origin("echo", "1.2.3.4", 80)
        assert b"GET / " in lab.raw(("1.2.3.4", 80), b"GET / HTTP/1.0\r\n\r\n")
        assert origin.connections == 1 and lab.dns.queries == []

What it does not do: start the gate. The machine's namespace is the test's own, so the gate just runs in it.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from tests.lab import links, namespaces

if TYPE_CHECKING:
    from collections.abc import Callable

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ORDINARY_USER = 12345


class LabMissingError(Exception):
    """A tool that the lab needs is not there: installing it would make the lab work."""


class _Control:
    """Requests to the internet's process, one at a time."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._lock = threading.Lock()

    def expect_ready(self) -> None:
        if self._sock.recv(5, socket.MSG_WAITALL) != b"ready":
            raise RuntimeError("the lab's internet did not start")

    def __call__(self, do: str, fds: tuple[int, ...] = (), **request: Any) -> tuple[Any, list[int]]:
        data = json.dumps({"do": do, **request}).encode()
        with self._lock:
            if fds:
                socket.send_fds(self._sock, [struct.pack(">I", len(data))], list(fds))
            else:
                self._sock.sendall(struct.pack(">I", len(data)))
            self._sock.sendall(data)
            head, got, _, _ = socket.recv_fds(self._sock, 4, 4)
            if len(head) < 4:
                raise RuntimeError("the lab's internet has ended")
            answer = json.loads(self._exactly(struct.unpack(">I", head)[0]))
        if "error" in answer:
            if answer.get("errno"):
                raise OSError(answer["errno"], answer["error"])
            raise RuntimeError(answer["error"])
        return answer["ok"], got

    def _exactly(self, size: int) -> bytes:
        # Not MSG_WAITALL: a socket with a timeout is non-blocking underneath, and gives what its buffer holds.
        data = bytearray()
        while len(data) < size:
            part = self._sock.recv(size - len(data))
            if not part:
                raise RuntimeError("the lab's internet has ended")
            data += part
        return bytes(data)


class Query(NamedTuple):
    """One question the DNS server was asked."""

    name: str
    kind: str  # "A", "AAAA", or the number of another type


class Dns:
    """The lab's DNS server as a script."""

    def __init__(self, control: _Control) -> None:
        self._control = control

    def set(self, name: str, sequence: list[dict[str, Any]] | None = None, **step: Any) -> None:
        """Write the answers of a name (`*.x` for every name under x); NXDOMAIN is what an unknown name gets.

        Args:
            name: without the final dot.
            sequence: steps, one for each question of a type; the last repeats.
            step: `A=[...]`, `AAAA=[...]`, `CNAME="..."`, `ttl=0`, `rcode="SERVFAIL"`, `drop=True` (never answers),
                `delay=0.5` (seconds), `truncate=True` (over UDP).
        """
        self._control("dns_set", name=name, steps=sequence if sequence is not None else [step])

    @property
    def queries(self) -> list[Query]:
        """Every question since the test began, in order, names in lower case."""
        return [Query(*item) for item in self._control("dns_queries")[0]]

    def count(self, name: str, kind: str = "A") -> int:
        """Return how often a name was asked for with this type: the number of look-ups."""
        return self.queries.count(Query(name, kind))


class Origin:
    """A server of the lab, seen from the test. See origins.KINDS for the kinds."""

    def __init__(self, control: _Control, number: int, address: str, port: int) -> None:
        self._control = control
        self._number = number
        self.address = address
        self.port = port

    def _stats(self) -> Any:
        return self._control("stats", number=self._number)[0]

    @property
    def connections(self) -> int:
        """How many connections were accepted (for udp: datagrams)."""
        return int(self._stats()["connections"])

    @property
    def open(self) -> int:
        """How many connections are open now."""
        return int(self._stats()["open"])

    @property
    def requests(self) -> int:
        """How many request heads came."""
        return int(self._stats()["requests"])

    @property
    def heads(self) -> list[bytes]:
        """The request heads, byte for byte; for socks5-proxy the `host:port` asked for."""
        return [head.encode("latin-1") for head in self._stats()["heads"]]

    @property
    def sni(self) -> list[str | None]:
        """The server names asked for in TLS."""
        return list(self._stats()["sni"])

    @property
    def received(self) -> bytes:
        """The first MiB of what came, over all connections."""
        return bytes(self._stats()["received"].encode("latin-1"))

    @property
    def received_size(self) -> int:
        """How many bytes came."""
        return int(self._stats()["received_size"])

    def wait(self, condition: Callable[[Self], bool], timeout: float = 60.0) -> None:
        """Wait until a condition on this origin holds.

        Raises:
            AssertionError: when it does not in `timeout` seconds.
        """
        end = time.monotonic() + timeout
        while not condition(self):
            assert time.monotonic() < end, f"the origin at {self.address}:{self.port} has {self._stats()}"
            time.sleep(0.01)

    def drop(self, *, reset: bool = False) -> None:
        """Cut the open connections, with RST where asked."""
        self._control("drop", number=self._number, reset=reset)

    def close(self) -> None:
        """Stop listening and cut what is open."""
        self._control("close", number=self._number)


class Lab:
    """The toy internet of one worker process. `clear()` between tests; the fixture does it."""

    MACHINE4, MACHINE6 = links.MACHINE4, links.MACHINE6
    BLACK_HOLE4, BLACK_HOLE6 = links.BLACK_HOLE4, links.BLACK_HOLE6
    UNREACHABLE4, UNREACHABLE6 = links.UNREACHABLE4, links.UNREACHABLE6
    METADATA = links.METADATA

    def __init__(self, folder: str, *, ipv6: bool) -> None:
        """Start the internet. The caller has made the machine's namespaces.

        Raises:
            LabMissingError: a tool is missing.
            OSError, RuntimeError: the kernel does not let us.
        """
        if links.find_ip() is None:
            raise LabMissingError("iproute2 is missing (install iproute2, or run scripts/setup as root)")
        self.ipv6 = ipv6
        ours, theirs = socket.socketpair()
        environment = dict(os.environ, PYTHONPATH=REPOSITORY)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.lab.internet", str(theirs.fileno())],
                cwd=REPOSITORY,
                env=environment,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        ours.settimeout(30)
        self._sock = ours
        self._control = _Control(ours)
        try:
            self._control.expect_ready()
            links.lay_machine(self._process.pid, ipv6=ipv6)
            authority = self._control("configure", ipv6=ipv6)[0]["ca"]
        except BaseException:
            self.stop()
            raise
        self.ca_file = os.path.join(folder, "lab-ca.pem")
        with open(self.ca_file, "w", encoding="ascii") as file:
            file.write(authority)
        self.dns = Dns(self._control)
        self._metadata: Origin | None = None
        self._folder = folder
        self._etc: dict[str, str] = {}
        self._own: list[str] = []

    def origin(
        self,
        kind: str = "http",
        address: str = "1.2.3.4",
        port: int = 80,
        *,
        tls: str | list[str] | None = None,
        machine: bool = False,
        **options: Any,
    ) -> Origin:
        """Start a server of the lab.

        Args:
            kind: one of origins.KINDS, or `udp`, `http-proxy`, `socks5-proxy`.
            address: see links.LOCAL4 and LOCAL6; port 0 takes a free one (`origin.port`).
            port: in the internet any port, also without root.
            tls: the names in its certificate (signed by `lab.ca_file`; option `untrusted=True` by another).
            machine: listen on the machine's side (its loopback, say), not in the internet.
            options: of the kind; see its docstring.
        """
        names = [tls] if isinstance(tls, str) else tls
        fds: tuple[int, ...] = ()
        if machine:
            sock = socket.socket(
                socket.AF_INET6 if ":" in address else socket.AF_INET,
                socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM,
            )
            with sock:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                sock.bind((address, port))
                if kind != "udp":
                    sock.listen(4096)
                answer, _ = self._control(
                    "open", (sock.fileno(),), kind=kind, address=address, port=port, options=options, tls=names
                )
        else:
            answer, _ = self._control("open", fds, kind=kind, address=address, port=port, options=options, tls=names)
        return Origin(self._control, answer["id"], address, answer["port"])

    def canary(self, address: str = "127.0.0.1", port: int = 0, *, udp: bool = False, machine: bool = True) -> Origin:
        """Start a listener that only records; by default on the machine's own loopback."""
        return self.origin("udp" if udp else "canary", address, port, machine=machine)

    @property
    def metadata(self) -> Origin:
        """The canary at 169.254.169.254:80; there from the first use in a test on."""
        if self._metadata is None:
            self._metadata = self.origin("canary", links.METADATA, 80)
        return self._metadata

    def http_proxy(self, address: str = "1.2.3.80", port: int = 3128, **options: Any) -> Origin:
        """Start an upstream HTTP proxy. Options: user, password, status, and those of `origin`."""
        return self.origin("http-proxy", address, port, **options)

    def socks5_proxy(self, address: str = "1.2.3.81", port: int = 1080, **options: Any) -> Origin:
        """Start an upstream SOCKS5 proxy. Options: user, password, code, and those of `origin`."""
        return self.origin("socks5-proxy", address, port, **options)

    def listener(self, address: str, port: int, *, udp: bool = False) -> socket.socket:
        """Return a listening socket of the internet's namespace, for a test that serves by itself."""
        _, fds = self._control("listener", address=address, port=port, udp=udp)
        return socket.socket(fileno=fds[0])

    def raw(
        self,
        where: tuple[str, int] | socket.socket,
        data: bytes,
        *,
        by_byte: bool = False,
        shut: bool = False,
        timeout: float = 10.0,
        until: bytes | None = None,
    ) -> bytes:
        """Write exact bytes and return what comes until end of file.

        Args:
            where: an address and port of the machine's side, or a connected socket (left open then).
            data: what to write.
            by_byte: one byte per write.
            shut: end our side after writing.
            timeout: seconds without a byte, after which what came is returned.
            until: return as soon as the answer contains this.
        """
        return raw(where, data, by_byte=by_byte, shut=shut, timeout=timeout, until=until)

    def as_user(self, argv: list[str], home: str | None = None) -> list[str]:
        """Return the command line that runs `argv` as an ordinary user (uid 12345 when this process is root).

        HOME is `home`, which becomes that user's and is shown where its parents are closed; without it, as root, an
        empty folder in memory.
        """
        return as_user(argv, home)

    def etc(self, name: str, text: str) -> None:
        """Replace /etc/resolv.conf, /etc/hosts or /etc/nsswitch.conf of this test's machine until the test ends.

        resolv.conf needs `nameserver 10.77.0.1` to reach the lab's server.
        """
        path = os.path.join(self._folder, name)
        with open(path, encoding="ascii") as file:
            self._etc.setdefault(name, file.read())
        with open(path, "w", encoding="ascii") as file:
            file.write(text)

    def own_address(self, address: str) -> None:
        """Give the machine one more address of its own (on `lo`) until the test ends."""
        self._own.append(address)
        namespaces.set_own_address(address, len(self._own), present=True)

    def clear(self) -> None:
        """End every origin, forget names and questions, and put the machine back as it was."""
        self._metadata = None
        while self._own:
            number = len(self._own)
            namespaces.set_own_address(self._own.pop(), number, present=False)
        for name, text in self._etc.items():
            with open(os.path.join(self._folder, name), "w", encoding="ascii") as file:
                file.write(text)
        self._etc.clear()
        self._control("clear")

    def stop(self) -> None:
        """End the internet."""
        self._sock.close()
        self._process.kill()
        self._process.wait()


def raw(
    where: tuple[str, int] | socket.socket,
    data: bytes,
    *,
    by_byte: bool = False,
    shut: bool = False,
    timeout: float = 10.0,
    until: bytes | None = None,
) -> bytes:
    """See Lab.raw; usable without the lab, against loopback."""
    if isinstance(where, socket.socket):
        return _talk(where, data, by_byte=by_byte, shut=shut, timeout=timeout, until=until)
    with socket.socket(socket.AF_INET6 if ":" in where[0] else socket.AF_INET) as sock:
        sock.settimeout(timeout)
        try:
            sock.connect(where)
        except ConnectionResetError:
            return b""  # accepted and reset before connect() returned
        return _talk(sock, data, by_byte=by_byte, shut=shut, timeout=timeout, until=until)


def _talk(sock: socket.socket, data: bytes, *, by_byte: bool, shut: bool, timeout: float, until: bytes | None) -> bytes:
    sock.settimeout(timeout)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    got = b""
    try:
        if by_byte:
            for at in range(len(data)):
                sock.sendall(data[at : at + 1])
        else:
            sock.sendall(data)
        if shut:
            sock.shutdown(socket.SHUT_WR)
    except (BrokenPipeError, ConnectionResetError):
        pass  # the other side answered and closed before it had all; its answer is what counts
    try:
        while part := sock.recv(65536):
            got += part
            if until is not None and until in got:
                break
    except (TimeoutError, ConnectionResetError):
        pass
    return got


def as_user(argv: list[str], home: str | None = None) -> list[str]:
    """See Lab.as_user; as root it needs no lab, but the right to make a mount namespace."""
    if os.geteuid() != 0:
        return argv
    return [sys.executable, os.path.join(REPOSITORY, "tests", "lab", "as_user.py"), home or "-", *argv]


__all__ = ["Dns", "Lab", "LabMissingError", "Origin", "Query", "as_user", "namespaces", "raw"]
