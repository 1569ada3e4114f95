"""The application over real sockets: who may come in, what is refused and how, and its neighbours that pass."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.lab.api import as_user
from tests.unit.server.api.running import Running
from tidegate.server.api.auth import Role
from tidegate.server.api.guard import HEADERS
from tidegate.server.api.static import StaticFile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

JSON = "application/json"
GOOD = b'{"colour": "red"}'


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """The application with the operations of running.py and one file."""
    files = {"/": StaticFile(b"<!doctype html>", "text/html; charset=utf-8", '"tag"')}
    with Running(tmp_path, files=files) as found:
        yield found


def test_a_token_is_needed_on_loopback_and_its_role_counts(running: Running) -> None:
    """SRV-1, SRV-2: without a token 401; a viewer reads and every write answers 403; an owner does both."""
    viewer, owner = running.token(Role.VIEWER), running.token(Role.OWNER)
    writes = [("POST", "/api/things", GOOD), ("DELETE", "/api/things/1", None)]
    for method, path, body in [("GET", "/api/things", None), ("GET", "/api/things/1", None), *writes]:
        headers = {"Content_Type": JSON} if body else {}
        assert running.ask(method, path, body, **headers).status == 401
        assert running.ask(method, path, body, token="tg_wrong", **headers).status == 401
        assert running.ask(method, path, body, token=owner, **headers).status in {200, 201}
        expected = {403} if method != "GET" else {200}
        assert {running.ask(method, path, body, token=viewer, **headers).status} == expected
    refused = running.ask("GET", "/api/things")
    assert refused.headers["www-authenticate"].startswith("Bearer")
    assert set(refused.json["error"]) == {"code", "what", "fix"}


def test_the_unix_socket_needs_no_token(running: Running) -> None:
    """SRV-1: over the unix socket this user is an owner, and only there may what is for this machine be asked."""
    assert running.ask("POST", "/api/things", GOOD, unix=True, Content_Type=JSON).json["by"] == "the command line"
    assert running.ask("GET", "/api/here", unix=True).status == 200
    assert running.ask("GET", "/api/here", token=running.token(Role.OWNER)).status == 403


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another uid to connect with")
def test_another_user_is_refused_on_the_unix_socket(running: Running, tmp_path: Path) -> None:
    """SRV-1: a peer of uid 12345 gets 403 from root's server even where the socket's mode lets it connect."""
    os.chmod(running.path, 0o666)  # as_user shows the folder it is in; those above are pytest's and stay closed
    program = (
        "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]);"
        "s.sendall(b'GET /api/things HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n');"
        "print(b''.join(iter(lambda: s.recv(65536), b'')).decode())"
    )
    argv = [sys.executable, "-I", "-c", program, running.path]
    mine = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout
    assert mine.startswith("HTTP/1.1 200")
    theirs = subprocess.run(as_user(argv, str(tmp_path)), capture_output=True, text=True, check=True, timeout=60).stdout
    assert theirs.startswith("HTTP/1.1 403")
    assert json.loads(theirs.partition("\n\n")[2])["error"]["code"] == "not-this-user"


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status", "code"),
    [
        ("GET", "/api/nothing", None, {}, 404, "not-found"),
        ("GET", "/api/things/", None, {}, 404, "not-found"),
        ("GET", "//api/things", None, {}, 404, "not-found"),
        ("GET", "/portal/", None, {}, 404, "not-found"),
        ("GET", "/..%2f..%2fetc/passwd", None, {}, 404, "not-found"),
        ("PUT", "/api/things", GOOD, {"Content_Type": JSON}, 405, "method"),
        ("OPTIONS", "/api/things", None, {}, 405, "method"),
        ("POST", "/", GOOD, {"Content_Type": JSON}, 405, "method"),
        ("POST", "/api/things", b'{"colour": "red", "colour": "blue"}', {"Content_Type": JSON}, 400, "malformed"),
        ("POST", "/api/things", b'{"colour": "red", "colou": 1}', {"Content_Type": JSON}, 400, "unknown"),
        ("POST", "/api/things", b'{"colour": 5}', {"Content_Type": JSON}, 400, "invalid"),
        ("POST", "/api/things", b"{}", {"Content_Type": JSON}, 400, "invalid"),
        ("POST", "/api/things", b"", {"Content_Type": JSON}, 400, "malformed"),
        ("POST", "/api/things", b'{"colour": "' + b"x" * 70000 + b'"}', {"Content_Type": JSON}, 413, "too-large"),
        ("POST", "/api/things", GOOD, {}, 415, "media-type"),
        ("POST", "/api/things", GOOD, {"Content_Type": "text/plain"}, 415, "media-type"),
        ("POST", "/api/things", GOOD, {"Content_Type": "application/x-www-form-urlencoded"}, 415, "media-type"),
        ("POST", "/api/things", GOOD, {"Content_Type": "application/json; charset=latin-1"}, 415, "media-type"),
        ("POST", "/api/things", GOOD, {"Content_Type": JSON, "Content_Encoding": "gzip"}, 415, "media-type"),
        ("DELETE", "/api/things/1", GOOD, {"Content_Type": JSON}, 400, "malformed"),
        ("GET", "/api/things?limit=x", None, {}, 400, "invalid"),
        ("GET", "/api/things?limt=3", None, {}, 400, "unknown"),
        ("GET", "/api/things?limit=3&limit=4", None, {}, 400, "malformed"),
        ("GET", "/api/things?%ff=3", None, {}, 400, "malformed"),
    ],
)
def test_what_is_refused(
    running: Running,
    method: str,
    path: str,
    body: bytes | None,
    headers: dict[str, str],
    status: int,
    code: str,
) -> None:
    """SRV-1: each kind of bad request has its status, in the one form of an error."""
    answer = running.ask(method, path, body, token=running.token(Role.OWNER), **headers)
    assert (answer.status, answer.json["error"]["code"]) == (status, code)
    if status == 405:
        assert method not in answer.headers["allow"].split(", ")


@pytest.mark.parametrize(
    ("method", "path", "body", "headers"),
    [
        ("GET", "/", None, {}),
        ("HEAD", "/", None, {}),
        ("HEAD", "/api/things", None, {}),
        ("GET", "/api/things", None, {}),
        ("GET", "/api/things?", None, {}),
        ("GET", "/api/things?limit=3", None, {}),
        ("GET", "/api/things/1", None, {}),
        ("DELETE", "/api/things/1", None, {}),
        ("POST", "/api/things", GOOD, {"Content_Type": "application/json; charset=utf-8"}),
        ("POST", "/api/things", b'{"colour": "' + b"x" * 60000 + b'"}', {"Content_Type": JSON}),
    ],
)
def test_what_passes(running: Running, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> None:
    """The neighbours of what is refused pass, and HEAD has no body."""
    answer = running.ask(method, path, body, token=running.token(Role.OWNER), **headers)
    assert answer.status in {200, 201}
    assert bool(answer.body) == (method != "HEAD")


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost:99999", "localhost.:{port}", ""]
)
def test_another_host_is_misdirected(running: Running, host: str) -> None:
    """SRV-1: a Host header that is not this listener's is 421, whatever it asks for (DNS rebinding)."""
    for path in ("/", "/api/open", "/api/things"):
        text = f"GET {path} HTTP/1.1\r\nHost: {host.format(port=running.port)}\r\nConnection: close\r\n\r\n"
        assert running.raw(text.encode()).startswith(b"HTTP/1.1 421")


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "LOCALHOST:{port}"])
def test_its_own_hosts_are_answered(running: Running, host: str) -> None:
    """The names of the listener, with its port, are answered."""
    text = f"GET /api/open HTTP/1.1\r\nHost: {host.format(port=running.port)}\r\nConnection: close\r\n\r\n"
    assert running.raw(text.encode()).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    ("headers", "passes"),
    [
        ({}, True),
        ({"Origin": "http://127.0.0.1:{port}"}, True),
        ({"Origin": "http://localhost:{port}", "Sec_Fetch_Site": "same-origin"}, True),
        ({"Sec_Fetch_Site": "none"}, True),
        ({"Origin": "http://localhost:1"}, False),
        ({"Origin": "https://127.0.0.1:{port}"}, False),
        ({"Origin": "http://evil.example"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": ""}, False),
        ({"Sec_Fetch_Site": "same-site"}, False),
        ({"Sec_Fetch_Site": "cross-site"}, False),
    ],
)
def test_pages_of_other_origins_are_refused(running: Running, headers: dict[str, str], *, passes: bool) -> None:
    """SRV-1: an Origin or Sec-Fetch-Site of another page is 403 even with a good token, for reading and for writing."""
    sent = {name: value.format(port=running.port) for name, value in headers.items()}
    owner = running.token(Role.OWNER)
    read = running.ask("GET", "/api/things", token=owner, **sent)
    write = running.ask("POST", "/api/things", GOOD, token=owner, Content_Type=JSON, **sent)
    assert (read.status, write.status) == ((200, 201) if passes else (403, 403))


def test_every_answer_is_dressed(running: Running) -> None:
    """SRV-1: each answer has the headers that keep other pages out, none of CORS and no cookie, and is not stored."""
    owner = running.token(Role.OWNER)
    answers = [
        running.ask("GET", "/"),
        running.ask("GET", "/api/things", token=owner),
        running.ask("GET", "/api/things"),
        running.ask("GET", "/none"),
        running.ask("OPTIONS", "/api/things", token=owner, Origin=f"http://localhost:{running.port}"),
        running.ask("GET", "/api/open", Host="evil.example"),
    ]
    for answer in answers:
        for name, value in HEADERS.items():
            assert answer.headers[name.lower()] == value
        assert not [name for name in answer.headers if name.startswith("access-control-")]
        assert "set-cookie" not in answer.headers
        assert "server" not in answer.headers
        assert answer.headers["cache-control"] in {"no-store", "no-cache"}
    assert answers[1].headers["cache-control"] == "no-store"


def test_a_bug_is_answered_and_tells_nothing(running: Running, capfd: pytest.CaptureFixture[str]) -> None:
    """INS-5: a bug is 500 and says so; where it was goes to the server's own output, what it quotes nowhere."""
    answer = running.ask("GET", "/api/broken", token=running.token(Role.OWNER))
    assert answer.status == 500
    assert b"secret" not in answer.body
    told = capfd.readouterr().err
    assert "ZeroDivisionError at api/running.py:" in told
    assert "in broken" in told
    assert "a secret of the server" not in told.replace('raise ZeroDivisionError("a secret of the server")', "")


def test_what_is_at_fault_is_quoted_safely(running: Running) -> None:
    """ASK-6: control and direction characters of a request come back escaped."""
    answer = running.ask("GET", "/%1b%5b2J%e2%80%ae", token=running.token(Role.OWNER))
    assert answer.status == 404
    assert "\x1b" not in answer.json["error"]["what"]
    assert "\u202e" not in answer.json["error"]["what"]


def test_wrong_tokens_are_slowed_down_and_right_ones_are_not(running: Running) -> None:
    """SRV-1: after ten wrong tokens come 429 answers; the owner's token passes all the while."""
    owner = running.token(Role.OWNER)
    statuses = [running.ask("GET", "/api/things", token=f"tg_{number}").status for number in range(12)]
    assert statuses == [401] * 10 + [429] * 2
    assert running.ask("GET", "/api/things", token=owner).status == 200


def test_the_use_of_a_token_is_kept_once_a_minute(running: Running) -> None:
    """SRV-2: when a token was used last is kept, not at every request."""
    owner = running.token(Role.OWNER)
    for _ in range(3):
        running.ask("GET", "/api/things", token=owner)
    assert running.store.touched == [(1, 1000.0)]


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 400000 + b"\r\n\r\n",
        b"POST /api/things HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
    ],
)
def test_what_is_no_request_is_400_in_the_same_form(running: Running, data: bytes) -> None:
    """SRV-1: bytes that are no HTTP request get the one form of an error, and the connection is closed."""
    head, _, body = running.raw(data).partition(b"\r\n\r\n")
    assert head.startswith((b"HTTP/1.1 400", b"HTTP/1.1 431"))
    assert json.loads(body)["error"]["code"] == "malformed"


def test_a_body_that_is_too_large_is_not_read(running: Running) -> None:
    """SRV-1: a body that says it is too large is refused before it is sent, and one without a length as it comes."""
    owner = running.token(Role.OWNER)
    head = f"POST /api/things HTTP/1.1\r\nHost: localhost:{running.port}\r\nAuthorization: Bearer {owner}\r\n"
    said = f"{head}Content-Type: {JSON}\r\nContent-Length: 999999999\r\n\r\n"
    assert running.raw(said.encode()).startswith(b"HTTP/1.1 413")
    chunk = b"fffff\r\n" + b"x" * 0xFFFFF + b"\r\n"
    unsaid = f"{head}Content-Type: {JSON}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    assert running.raw(unsaid + chunk).startswith(b"HTTP/1.1 413")
