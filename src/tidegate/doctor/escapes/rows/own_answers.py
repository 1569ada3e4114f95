"""A task that would answer its own question: the server's sockets, its records, its port, and saying to be the user.

Beside the trial stands what a server has in its state folder (machine.py), in a place that a hold hides. Its processes
are those of the rows on outer processes, and its commands need the same sockets.
"""

from __future__ import annotations

import os
import socket
import struct

from tidegate.doctor.escapes.rows.asked import connect, say
from tidegate.doctor.escapes.table import FENCED, GATED, HELD, NO_FAMILY, escape
from tidegate.doctor.escapes.tools import tcp, unix, wrong

_TABLES = ("tidegate.db", "tidegate.db-wal", "keys/actions.key", "log/actions.jsonl", "run/server.json", "run/lock")


def _every_way_to(name: str) -> None:
    """Connect to a socket of the server's by each path that could lead there; the last refusal is the row's."""
    state = HELD["state"]
    link = f"{os.getcwd()}/way-{os.getpid()}"
    os.symlink(state, link)
    ways = [state, os.path.realpath(state), link, f"/proc/self/root{state}", f"/proc/self/cwd/../{_below_home(state)}"]
    ways += [f"/proc/{pid}/root{state}" for pid in (1, HELD["outer_pid"])]
    refused: OSError | None = None
    try:
        for way in ways:
            try:
                unix(f"{way}/run/{name}")
            except OSError as error:
                refused = error
                continue
            wrong(f"{way} leads to it")
    finally:
        os.unlink(link)
    try:
        os.chdir(f"{state}/run")
        unix(name)
    except OSError as error:
        refused = error
    else:
        wrong("from its folder it can be reached")
    if refused is not None:
        raise refused


def _below_home(state: str) -> str:
    return os.path.relpath(state, HELD["home"])


@escape("ENOENT")
def the_servers_front_door() -> None:
    """The socket where `task`, `exec` and `run` tell the server what to do, by every path."""
    _every_way_to("front.sock")


@escape("ENOENT")
def the_servers_api() -> None:
    """The socket of the API, where `tidegate answer` goes; who comes there is the owner."""
    _every_way_to("api.sock")


@escape("ENOENT")
def the_servers_records() -> None:
    """The database with its answers and tokens, the log and its key, and where the server listens."""
    found: OSError | None = None
    for name in _TABLES:
        try:
            with open(f"{HELD['state']}/{name}", "rb") as file:
                wrong(f"{name} reads {file.read(16)!r}")
        except OSError as error:
            found = error
    if found is not None:
        raise found


@escape("ENOENT", "EROFS")
def an_answer_put_into_the_store() -> None:
    """A database of the task's own in place of the server's, or beside it for the next one to take up."""
    state = HELD["state"]
    found: OSError | None = None
    for name in ("tidegate.db-journal", "run/front.sock.new", "keys/actions.head"):
        try:
            os.close(os.open(f"{state}/{name}", os.O_WRONLY | os.O_CREAT, 0o600))
        except OSError as error:
            found = error
            continue
        wrong(f"{name} can be written")
    if found is not None:
        raise found


@escape("ECONNREFUSED", holds=FENCED, offline=NO_FAMILY)
def the_servers_port() -> None:
    """The port of API and portal: loopback by every address that leads there."""
    addresses = [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::ffff:127.0.0.1")]
    found: OSError | None = None
    for family, address in addresses:
        try:
            tcp(family, address, HELD["api_tcp4"])
        except OSError as error:
            found = error
            continue
        wrong(f"{address} leads to it")
    if found is not None:
        raise found


@escape("403", holds=GATED)
def the_servers_port_by_the_gate() -> None:
    """The same by asking the gate for it."""
    say(connect(f"127.0.0.1:{HELD['api_tcp4']}"))


@escape("403", holds=GATED)
def the_servers_port_in_clear_text() -> None:
    """An answer to a question as a request that the gate would forward."""
    where = f"127.0.0.1:{HELD['api_tcp4']}"
    body = b'{"answer":"task"}'
    head = f"POST http://{where}/api/questions/1/answer HTTP/1.1\r\nHost: {where}\r\nContent-Type: application/json\r\n"
    say(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)


_SCM_CREDENTIALS = 2  # linux/socket.h


@escape("EPERM")
def credentials_of_another_process() -> None:
    """Saying over a unix socket to be another process than one is, such as one outside (SCM_CREDENTIALS)."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with here, there:
        there.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        init = struct.pack("3i", 1, os.getuid(), os.getgid())
        here.sendmsg([b"x"], [(socket.SOL_SOCKET, _SCM_CREDENTIALS, init)])
        if there.recvmsg(1, 64)[1]:
            wrong("it is believed")
