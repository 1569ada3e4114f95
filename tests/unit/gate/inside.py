"""A gate that reads inside TLS, and clients of it: what the tests of inspection share."""

from __future__ import annotations

import contextlib
import ssl
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.gate.kit import read_exactly, read_head
from tidegate.inspect.authority import Authority
from tidegate.inspect.secrets import Vault
from tidegate.inspect.terminate import Contexts
from tidegate.model.rule import RuleLimits, only
from tidegate.policy.scope import scope_of, widened

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from tests.lab.api import Lab
    from tests.unit.gate.kit import Serving
    from tidegate.inspect.secrets import Secret

READ = RuleLimits(requests=only(paths=("/**",)))


class Inside:
    """One gate whose rules are read, with the roots that its task trusts."""

    def __init__(self, gate: Serving, roots: str, secrets: tuple[Secret, ...] = ()) -> None:
        self.gate = gate
        scope = widened(scope_of(gate.task.policy), [host for secret in secrets for host, _ in secret.hosts])
        self.authority = Authority(scope, "t1", time.time)  # noqa: TID251
        self.contexts = Contexts(self.authority, roots, time.time)  # noqa: TID251
        if secrets:
            gate.task.secrets = Vault(secrets)
        gate.task.inspector = self.contexts
        self.trusted = b"".join(self.authority.certificates).decode()

    def context(self, *alpn: str) -> ssl.SSLContext:
        """What a client of the task trusts and offers."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        context.load_verify_locations(cadata=self.trusted)
        if alpn:
            context.set_alpn_protocols(list(alpn))
        return context

    def tunnel(self, where: str, *alpn: str, name: str | None = None, context: ssl.SSLContext | None = None) -> Any:
        """A TLS connection through a CONNECT, verified by the authority of the task."""
        sock = self.gate.tunnel(where)
        host = name or where.rpartition(":")[0].strip("[]")
        return (context or self.context(*alpn)).wrap_socket(sock, server_hostname=host)

    def ask(self, where: str, data: bytes) -> bytes:
        """Send bytes inside TLS and return what comes until the end."""
        with self.tunnel(where) as sock:
            sock.sendall(data)
            return read_all(sock)


def read_all(sock: socket.socket) -> bytes:
    """Read to the end, however it comes."""
    got = b""
    with contextlib.suppress(OSError):
        while data := sock.recv(65536):
            got += data
    return got


def answer(sock: socket.socket) -> tuple[bytes, bytes]:
    """Read one answer with a length: head and body."""
    head = read_head(sock)
    size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or b"0")
    return head, read_exactly(sock, size)


def get(host: str, path: str = "/", *lines: str, method: str = "GET") -> bytes:
    """Return a request in origin form."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", f"Host: {host}", *lines, "", ""]).encode()


@pytest.fixture
def inside(lab: Lab, serve: Callable[..., Serving]) -> Callable[..., Inside]:
    """Start gates that read: `inside("a.test:443", limit=RuleLimits(requests=only(methods=("GET",))))`."""

    def start(
        *allow: str,
        limit: RuleLimits = READ,
        roots: str | None = None,
        secrets: tuple[Secret, ...] = (),
        **options: Any,
    ) -> Inside:
        gate = serve(*allow, limit=limit, **options)
        if roots is None:
            with open(lab.ca_file, encoding="ascii") as file:
                roots = file.read()
        return Inside(gate, roots, secrets)

    return start
