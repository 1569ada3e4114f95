"""Real servers for tests/clients: sshd, PostgreSQL and Redis, and WebSocket and gRPC in the test's process.

Each serves on a listening socket of the lab's internet, though it runs on the machine's side: sshd gets every
connection as its standard input and output, as from inetd; where a server listens on a unix socket, a thread relays.
Everything ends with its `with` block.
"""

from __future__ import annotations

import contextlib
import getpass
import glob
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Self

import grpc
from websockets.sync.server import serve

from tests.product import PATIENCE

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import trustme
    from websockets.sync.server import ServerConnection

SSHD = "/usr/sbin/sshd"
POSTGRES = os.path.dirname(next(iter(sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"))), "/nowhere/postgres"))


class Accepting:
    """Accepts on a listening socket and hands each connection to `serve` in a thread of its own."""

    def __init__(self, listener: socket.socket, serve: Callable[[socket.socket], None]) -> None:
        self._listener = listener
        self._serve = serve
        self.connections = 0

    def __enter__(self) -> Self:
        threading.Thread(target=self._run, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _run(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()


def relay_to(path: str) -> Callable[[socket.socket], None]:
    """Return what carries a connection to a unix socket and back."""

    def carry(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def serve(sock: socket.socket) -> None:
        with sock, socket.socket(socket.AF_UNIX) as inner:
            try:
                inner.connect(path)
            except OSError:
                return  # it ends just now
            back = threading.Thread(target=carry, args=(inner, sock), daemon=True)
            back.start()
            carry(sock, inner)
            back.join()

    return serve


class Sshd:
    """An sshd that lets in whoever runs the tests, by a key; `config` is the client's ssh_config."""

    def __init__(self, listener: socket.socket, folder: Path, home: str) -> None:
        """Make keys in `folder`, and what the client needs in `home`."""
        for name, where in (("host", str(folder)), ("id", home)):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{where}/{name}"],
                check=True,
                capture_output=True,
            )
        shutil.copy(f"{home}/id.pub", folder / "authorized")
        with (
            open(folder / "host.pub", encoding="ascii") as public,
            open(f"{home}/known", "w", encoding="ascii") as known,
        ):
            known.write(f"a.test,b.test {public.read()}")
        config = folder / "sshd_config"
        config.write_text(
            f"HostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\nStrictModes no\nUsePAM no\n"
            "PermitRootLogin yes\nPasswordAuthentication no\nSubsystem sftp internal-sftp\nPrintMotd no\n"
            "SetEnv PATH=/usr/local/bin:/usr/bin:/bin\n"
        )
        self.config = f"{home}/ssh_config"
        with open(self.config, "w", encoding="ascii") as file:
            file.write(
                f"User {getpass.getuser()}\nIdentityFile {home}/id\nIdentitiesOnly yes\n"
                f"UserKnownHostsFile {home}/known\nGlobalKnownHostsFile /dev/null\nBatchMode yes\nLogLevel ERROR\n"
            )
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)  # where it locks up its child that has no rights
        self._argv = [SSHD, "-i", "-e", "-f", str(config)]
        self._accepting = Accepting(listener, self._serve)

    def _serve(self, sock: socket.socket) -> None:
        with sock:
            subprocess.run(self._argv, stdin=sock, stdout=sock, stderr=subprocess.DEVNULL, check=False)

    def __enter__(self) -> Self:
        self._accepting.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._accepting.__exit__()


class Daemon:
    """A server on a unix socket, reached through a listening socket of the lab.

    It runs as `nobody` where the tests run as root, because PostgreSQL refuses root, in a folder under /tmp.
    """

    def __init__(
        self, listener: socket.socket, name: str, prepare: list[str], argv: list[str], serves: list[str]
    ) -> None:
        """Start `argv` after `prepare`, with {folder} filled in; `name` is the socket's in there.

        `serves` is a command that succeeds once it serves: who is let in before that is told that it starts.
        """
        self._folder = tempfile.mkdtemp(prefix="tidegate-test-server-")
        options: dict[str, Any] = {}
        if os.geteuid() == 0:
            options = {"user": "nobody", "group": "nogroup", "extra_groups": []}
            os.chown(self._folder, *pwd.getpwnam("nobody")[2:4])
        options |= {"cwd": self._folder, "stdin": subprocess.DEVNULL, "env": {"PATH": os.environ["PATH"]}}
        filled = [[word.format(folder=self._folder) for word in words] for words in (prepare, argv, serves)]
        if prepare:
            subprocess.run(filled[0], check=True, capture_output=True, **options)
        self._process = subprocess.Popen(filled[1], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
        path = os.path.join(self._folder, name)
        end = time.monotonic() + PATIENCE
        while subprocess.run(filled[2], check=False, capture_output=True, **options).returncode:
            assert time.monotonic() < end, f"{argv[0]} did not start"
            assert self._process.poll() is None, f"{argv[0]} ended with {self._process.returncode}"
            time.sleep(0.02)
        self._accepting = Accepting(listener, relay_to(path))

    def __enter__(self) -> Self:
        self._accepting.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._accepting.__exit__()
        self._process.terminate()
        self._process.wait(PATIENCE)
        shutil.rmtree(self._folder, ignore_errors=True)


def postgres(listener: socket.socket) -> Daemon:
    """Start a PostgreSQL with a fresh database that trusts everybody."""
    data = "{folder}/data"
    return Daemon(
        listener,
        ".s.PGSQL.5432",
        [f"{POSTGRES}/initdb", "-D", data, "-U", "tester", "-A", "trust", "--no-sync", "--no-locale", "-E", "UTF8"],
        [f"{POSTGRES}/postgres", "-D", data, "-c", "listen_addresses=", "-k", "{folder}", "-F"],
        [f"{POSTGRES}/pg_isready", "-h", "{folder}"],
    )


def redis(listener: socket.socket) -> Daemon:
    """Start a Redis."""
    argv = ["redis-server", "--port", "0", "--unixsocket", "{folder}/redis.sock", "--save", "", "--dir", "{folder}"]
    return Daemon(listener, "redis.sock", [], argv, ["redis-cli", "-s", "{folder}/redis.sock", "ping"])


@contextlib.contextmanager
def websocket(listener: socket.socket, context: ssl.SSLContext | None) -> Iterator[None]:
    """Serve a WebSocket that echoes, with TLS where there is a context."""

    def echo(connection: ServerConnection) -> None:
        for message in connection:
            connection.send(message)

    server = serve(echo, sock=listener, ssl=context)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


@contextlib.contextmanager
def echo_by_grpc(listener: socket.socket, folder: Path, leaf: trustme.LeafCert) -> Iterator[None]:
    """Serve the method /tide.Test/Echo over TLS."""
    handlers = {"Echo": grpc.unary_unary_rpc_method_handler(lambda message, _context: message)}
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("tide.Test", handlers),))
    pair = (leaf.private_key_pem.bytes(), leaf.cert_chain_pems[0].bytes())
    path = str(folder / "grpc")
    server.add_secure_port(f"unix:{path}", grpc.ssl_server_credentials([pair]))
    server.start()
    try:
        with Accepting(listener, relay_to(path)):
            yield
    finally:
        server.stop(0).wait()
