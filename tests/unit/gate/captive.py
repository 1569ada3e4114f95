"""A network namespace in which every connection is captured, made as a hold would make it, for the gate's tests.

    with Captive() as captive:
        gate.add_capture(CaptureSockets(**captive.sockets()), task)
        sock = captive.socket()          # belongs to the namespace; used from here
        sock.connect((captive.look_up("a.test"), 443))

`lo` is the only interface, with an address of each synthetic range; TCP to anywhere but loopback is redirected by
nftables, and so are look-ups. With `redirect=False` there is no nftables: every address is local (`ip route add
local`), and listeners stand on the ports themselves.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
from typing import Any, Self

import dns.message
import pytest

from tests.lab import links, namespaces
from tidegate.gate.original import ADDRESSED, REDIRECTED

CAPTURE, DNS_UDP, DNS_TCP = 15001, 15053, 15054
_PATIENCE = 120  # seconds, for a program inside
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
_RULES = f"""
table inet capture {{
  chain out {{
    type nat hook output priority -100;
    ip daddr 127.0.0.0/8 accept
    ip6 daddr ::1 accept
    udp dport 53 redirect to :{DNS_UDP}
    tcp dport 53 redirect to :{DNS_TCP}
    meta l4proto tcp redirect to :{CAPTURE}
  }}
}}
"""


def _lay(redirect: bool, ipv6: bool) -> None:
    namespaces.unshare(namespaces.CLONE_NEWNET | namespaces.CLONE_NEWNS)
    namespaces.private_mounts()
    if os.geteuid():
        namespaces._make_ambient()  # nft and ip are started by exec
    namespaces.loopback_up()
    ipv6 = ipv6 and links.enable_ipv6()
    lines = ["addr add 198.18.0.1/32 dev lo"]
    lines += ["route add default dev lo"] if redirect else ["route add local default dev lo"]
    if ipv6:
        lines.append("addr add fd74:6467:6174:6500::1/128 dev lo nodad")
        # The kernel adds this one too, but from a queue, and so up to a tenth of a second later: what is answered
        # meanwhile has no way back, and a datagram is not sent again.
        lines.append("route replace local fd74:6467:6174:6500::1/128 dev lo table local")
        lines += ["route add ::/0 dev lo"] if redirect else ["route add local ::/0 dev lo"]
    links.batch(lines)
    if redirect:
        nft = shutil.which("nft", path=_PATH)
        assert nft is not None
        subprocess.run([nft, "-f", "-"], input=_RULES, text=True, check=True)


def _serve(control: socket.socket) -> None:
    while request := control.recv(1 << 16):
        do = json.loads(request)
        fds: list[int] = []
        answer: Any = ""
        try:
            if do["do"] == "socket":
                sock = socket.socket(do["family"], do["kind"])
                if "bind" in do:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    if do["family"] == socket.AF_INET6:
                        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                    sock.bind(tuple(do["bind"]))
                    if do["kind"] == socket.SOCK_STREAM:
                        sock.listen(512)
                fds = [sock.detach()]
            else:
                done = subprocess.run(do["argv"], capture_output=True, text=True, check=False, timeout=_PATIENCE)
                answer = [done.returncode, done.stdout, done.stderr]
        except OSError as error:
            answer = {"errno": error.errno}
        except subprocess.TimeoutExpired:
            answer = {"errno": errno.ETIMEDOUT}
        socket.send_fds(control, [json.dumps(answer).encode()], fds)
        for fd in fds:
            os.close(fd)


class Captive:
    """The namespace, for as long as the `with` block."""

    def __init__(self, *, redirect: bool = True, ipv6: bool = True) -> None:
        if redirect and shutil.which("nft", path=_PATH) is None:
            pytest.skip("nft is missing")
        self.redirect = redirect
        self.handle: Any = None  # the gate's Capture, set by the fixture
        self._folder = tempfile.mkdtemp(prefix="tidegate-captive-")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._pid = os.fork()
        if self._pid == 0:
            status = 1
            try:
                ours.close()
                namespaces.die_with_parent()
                _lay(redirect, ipv6)
                self._mount_etc()
                theirs.send(b"ready")
                _serve(theirs)
                status = 0
            except BaseException as error:  # noqa: BLE001 - told to the parent, which skips
                with contextlib.suppress(OSError):
                    theirs.send(repr(error).encode()[:4000])
            finally:
                os._exit(status)
        theirs.close()
        self._control = ours
        said = ours.recv(4096)
        if said != b"ready":
            self.close()
            pytest.skip(f"no such namespace here: {said.decode()}")

    def _mount_etc(self) -> None:
        for name, text in (
            ("resolv.conf", "nameserver 127.0.0.1\noptions timeout:20 attempts:1\n"),
            ("hosts", "127.0.0.1 localhost\n"),
            ("nsswitch.conf", "hosts: files dns\n"),
        ):
            path = os.path.join(self._folder, name)
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
            os.chmod(path, 0o644)
            namespaces.mount(path, os.path.realpath(f"/etc/{name}"), flags=namespaces.MS_BIND)

    def _ask(self, **request: Any) -> tuple[Any, list[int]]:
        self._control.send(json.dumps(request).encode())
        data, fds, _, _ = socket.recv_fds(self._control, 1 << 20, 4)
        answer = json.loads(data)
        if isinstance(answer, dict):
            raise OSError(answer["errno"], os.strerror(answer["errno"]))
        return answer, list(fds)

    def socket(
        self, family: int = socket.AF_INET, kind: int = socket.SOCK_STREAM, bind: tuple[str, int] | None = None
    ) -> socket.socket:
        """Return a socket of the namespace, bound (and listening) where asked; it is used from here."""
        request = {"do": "socket", "family": int(family), "kind": int(kind)}
        _, fds = self._ask(**request, **({"bind": bind} if bind else {}))
        sock = socket.socket(fileno=fds[0])
        sock.settimeout(10)
        return sock

    def run(self, *argv: str) -> tuple[int, str, str]:
        """Run a program inside: its exit status, output and errors."""
        status, out, errors = self._ask(do="run", argv=argv)[0]
        return status, out, errors

    def sockets(self, *ports: int) -> dict[str, Any]:
        """Return the descriptors of a CaptureSockets; without redirection, listeners on these ports."""
        stream, datagram = socket.SOCK_STREAM, socket.SOCK_DGRAM
        listeners: list[tuple[int, Any]] = []
        for family, loopback, wild in ((socket.AF_INET, "127.0.0.1", "0.0.0.0"), (socket.AF_INET6, "::1", "::")):
            if self.redirect:
                listeners.append((self.socket(family, stream, (loopback, CAPTURE)).detach(), REDIRECTED))
            else:
                listeners += [(self.socket(family, stream, (wild, port)).detach(), ADDRESSED) for port in ports]
        udp = [self.socket(socket.AF_INET, datagram, ("127.0.0.1", 53)).detach()]
        tcp = [self.socket(socket.AF_INET, stream, ("127.0.0.1", 53)).detach()]
        if self.redirect:
            udp += [
                self.socket(socket.AF_INET, datagram, ("127.0.0.1", DNS_UDP)).detach(),
                self.socket(socket.AF_INET6, datagram, ("::1", DNS_UDP)).detach(),
            ]
            tcp.append(self.socket(socket.AF_INET, stream, ("127.0.0.1", DNS_TCP)).detach())
        return {"listeners": tuple(listeners), "datagrams": tuple(udp), "streams": tuple(tcp)}

    # Small clients.

    def query(self, name: str, kind: str = "A", *, server: str = "127.0.0.1", tcp: bool = False, **more: Any) -> Any:
        """Ask one question and return the answer as dnspython reads it."""
        message = dns.message.make_query(name, kind, **more)
        data = self.exchange(message.to_wire(), server=server, tcp=tcp)
        answer = dns.message.from_wire(data)
        assert message.is_response(answer)
        return answer

    def exchange(self, data: bytes, *, server: str = "127.0.0.1", tcp: bool = False) -> bytes:
        """Send one message to the resolver and return what comes back."""
        family = socket.AF_INET6 if ":" in server else socket.AF_INET
        with self.socket(family, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM) as sock:
            sock.connect((server, 53))
            if not tcp:
                sock.send(data)
                return sock.recv(65535)
            sock.sendall(struct.pack(">H", len(data)) + data)
            stream = sock.makefile("rb")
            return stream.read(struct.unpack(">H", stream.read(2))[0])

    def look_up(self, name: str, kind: str = "A") -> str:
        """Return the address a name has here."""
        return str(self.query(name, kind).answer[0][0])

    def connect(self, host: str, port: int, kind: str = "A") -> socket.socket:
        """Look up a name, or take an address, and return a connection to it."""
        literal = ":" in host or host.replace(".", "").isdigit()
        address = host if literal else self.look_up(host, kind)
        sock = self.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        try:
            sock.connect((address, port))
        except OSError:
            sock.close()
            raise
        return sock

    def socket_reset(self, address: str, port: int) -> None:
        """Connect and wait for the reset."""
        with contextlib.suppress(ConnectionResetError), self.connect(address, port) as sock:
            sock.recv(1)

    def close(self) -> None:
        """End the namespace."""
        self._control.close()
        os.waitpid(self._pid, 0)
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
