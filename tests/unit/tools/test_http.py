"""tidegate.tools.http: one connection, byte by byte, with tools that run nothing."""

from __future__ import annotations

import json
import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.product import PATIENCE
from tidegate.tools import http
from tidegate.tools.calls import Called
from tidegate.tools.declaration import Tool
from tidegate.tools.http import Conversation
from tidegate.tools.schema import normal

if TYPE_CHECKING:
    from collections.abc import Iterator

HOST = b"Host: tools.tidegate.internal\r\n"
JSON = b"Content-Type: application/json\r\n"
SCHEMA = normal({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
TOOLS = {
    "t": Tool("t", ("/bin/true",), "About it.", SCHEMA, "", max_input_bytes=100),
    "u": Tool("u", ("/bin/true",), "Another.", normal({"type": "object"}), ""),
}


class Talk:
    """A client on one end of a pair; the conversation runs in a thread on the other."""

    def __init__(self) -> None:
        self.client, server = socket.socketpair()
        self.client.settimeout(PATIENCE)
        self.life, life = socket.socketpair()
        self.inputs: list[tuple[str, bytes]] = []
        self._thread = threading.Thread(target=self._serve, args=(server, life), daemon=True)
        self._thread.start()

    def _serve(self, server: socket.socket, life: socket.socket) -> None:
        with server, life:
            Conversation(server, TOOLS, self._run, life.fileno()).serve()

    def _run(self, tool: Tool, data: bytes) -> Called:
        self.inputs.append((tool.name, data))
        word = json.loads(data).get("word", "ok")
        if word == "ok":
            return Called("ok", b'{"done": true}' if tool.name == "t" else b"a text")
        return Called(word, message="no", status=3, said="why")

    def all(self, data: bytes, *, end: bool = True) -> bytes:
        """Send bytes, end our direction, and return what comes until the end of the connection."""
        self.client.sendall(data)
        if end:
            self.client.shutdown(socket.SHUT_WR)
        found = b""
        while piece := self.client.recv(65536):
            found += piece
        return found

    def one(self, data: bytes) -> tuple[int, dict[str, Any]]:
        """Send one request, and return status and JSON of the answer."""
        head, _, body = self.all(data).partition(b"\r\n\r\n")
        return int(head.split(b" ")[1]), json.loads(body) if body else {}

    def close(self) -> None:
        """End it."""
        self.client.close()
        self._thread.join(PATIENCE)
        self.life.close()
        assert not self._thread.is_alive()


@pytest.fixture
def talk() -> Iterator[Talk]:
    """A conversation."""
    made = Talk()
    yield made
    made.close()


def get(path: bytes, more: bytes = b"", host: bytes = HOST, method: bytes = b"GET") -> bytes:
    """A request without a body."""
    return method + b" " + path + b" HTTP/1.1\r\n" + host + more + b"\r\n"


def post(path: bytes, body: bytes, more: bytes = JSON, host: bytes = HOST) -> bytes:
    """A request with one."""
    return b"POST %b HTTP/1.1\r\n%b%bContent-Length: %d\r\n\r\n%b" % (path, host, more, len(body), body)


def test_tools_are_listed_described_and_run(talk: Talk) -> None:
    """SRV-6: several requests on one connection, the input as it was sent, JSON told from text."""
    body = b'{"n": 1}'
    data = get(b"/") + get(b"/t") + get(b"/t", method=b"HEAD") + post(b"/t", body) + post(b"/u", b"{}")
    answers = talk.all(data).split(b"HTTP/1.1 200 OK\r\n")[1:]
    assert len(answers) == 5
    assert json.loads(answers[0].partition(b"\r\n\r\n")[2])["tools"][1]["name"] == "u"
    assert json.loads(answers[1].partition(b"\r\n\r\n")[2])["inputSchema"] == SCHEMA
    assert answers[2].endswith(b"\r\n\r\n")
    assert answers[3].endswith(b'\r\n\r\n{"done": true}')
    assert b"Content-Type: application/json" in answers[3]
    assert b"Content-Type: text/plain" in answers[4]
    assert all(b"Cache-Control: no-store" in one for one in answers)
    assert talk.inputs == [("t", body), ("u", b"{}")]


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (get(b"/nix"), 404),
        (get(b"/T"), 404),
        (get(b"/t/"), 404),
        (get(b"//t"), 404),
        (get(b"/t?x=1"), 404),
        (get(b"/%74"), 404),
        (get(b"/../t"), 404),
        (get(b"/mcp"), 405),
        (get(b"/mcp", method=b"DELETE"), 405),
        (get(b"/t", method=b"PUT"), 405),
        (post(b"/", b"{}"), 405),
        (post(b"/t", b"{}", b""), 415),
        (post(b"/t", b"{}", b"Content-Type: text/plain\r\n"), 415),
        (post(b"/t", b"n=1", b"Content-Type: application/x-www-form-urlencoded\r\n"), 415),
        (post(b"/t", b"x", JSON + b"Content-Encoding: gzip\r\n"), 415),
        (post(b"/t", b"{}"), 422),
        (post(b"/t", b'{"n": 1, "n": 2}'), 400),
        (post(b"/t", b""), 400),
        (post(b"/t", b" " * 101), 413),
        (post(b"/mcp", b"{"), 400),
        (post(b"/mcp", b"{}", JSON + b"MCP-Protocol-Version: 1999-01-01\r\n"), 400),
        (post(b"/mcp", b"{}", JSON + b"Accept: text/html\r\n"), 406),
        (get(b"/t", b"Content-Length: 2\r\n") + b"{}", 400),
    ],
)
def test_what_cannot_be_done_is_refused(talk: Talk, data: bytes, status: int) -> None:
    """SRV-6: nothing of it runs, and the answer is JSON with a word."""
    found, answer = talk.one(data)
    assert (found, talk.inputs) == (status, [])
    assert answer["error"]["message"]


def test_what_is_asked_with_head_has_no_body(talk: Talk) -> None:
    """SRV-6, GAT-4: a refusal too: what came behind its head would be the beginning of the next answer."""
    answers = talk.all(get(b"/nix", method=b"HEAD") + get(b"/", method=b"HEAD") + get(b"/mcp", method=b"HEAD"))
    heads = answers.split(b"\r\n\r\n")
    assert [head.split(b" ")[1] for head in heads[:-1]] == [b"404", b"200", b"405"]
    assert heads[-1] == b""


@pytest.mark.parametrize(
    ("word", "status"),
    [("busy", 503), ("rate", 429), ("failed", 502), ("timeout", 504), ("too-much-output", 502), ("not-started", 500)],
)
def test_how_a_run_ended_is_the_status(talk: Talk, word: str, status: int) -> None:
    """SRV-6: and the standard error of one that failed, and of no other."""
    found, answer = talk.one(post(b"/u", b'{"word": "%b"}' % word.encode()))
    assert (found, answer["error"]["code"]) == (status, word)
    assert ("stderr" in answer["error"]) == (word == "failed")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        (b"Host: tools.tidegate.internal:80\r\n", 200),
        (b"Host: TOOLS.tidegate.internal.\r\n", 200),
        (b"Host: evil.example.com\r\n", 421),
        (b"Host: tools.tidegate.internal:8080\r\n", 421),
        (b"Host: tools.tidegate.internal.evil.example.com\r\n", 421),
        (b"Host: 127.0.0.1\r\n", 421),
        (b"Host: x@tools.tidegate.internal\r\n", 400),
        (b"Host: \r\n", 400),
        (b"", 400),
        (HOST + HOST, 400),
        (HOST + b"Origin: http://tools.tidegate.internal\r\n", 200),
        (HOST + b"Origin: null\r\n", 403),
        (HOST + b"Origin: http://evil.example.com\r\n", 403),
        (HOST + b"Origin: https://tools.tidegate.internal\r\n", 403),
    ],
)
def test_host_and_origin_are_checked(talk: Talk, host: bytes, status: int) -> None:
    """SRV-6: a page that was led here by its own name (DNS rebinding) or from elsewhere gets nothing."""
    assert talk.one(post(b"/t", b'{"n": 1}', host=host))[0] == status
    assert bool(talk.inputs) == (status == 200)


@pytest.mark.parametrize(
    ("target", "status"),
    [
        (b"http://tools.tidegate.internal/", 200),
        (b"http://evil.example.com/", 421),
        (b"http://tools.tidegate.internal:81/", 421),
        (b"https://tools.tidegate.internal/", 400),
        (b"*", 400),
    ],
)
def test_a_target_in_absolute_form_names_the_same(talk: Talk, target: bytes, status: int) -> None:
    """SRV-6, GAT-3: as any server has to take it (RFC 9112 section 3.2.2), and no other host."""
    host = b"Host: " + target.split(b"/")[2] + b"\r\n" if b"//" in target else HOST
    assert talk.one(get(target, host=host))[0] == status


SMUGGLED = b"POST /u HTTP/1.1\r\n" + HOST + JSON + b"Content-Length: 2\r\n\r\n{}"


@pytest.mark.parametrize(
    "data",
    [
        post(b"/t", b"", JSON + b"Transfer-Encoding: chunked\r\n") + b"0\r\n\r\n" + SMUGGLED,
        b"POST /t HTTP/1.1\r\n" + HOST + JSON + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}" + SMUGGLED,
        b"POST /t HTTP/1.1\r\n" + HOST + JSON + b"Content-Length: +2\r\n\r\n{}" + SMUGGLED,
        b"POST /t HTTP/1.1\r\n" + HOST + JSON + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + SMUGGLED,
        b"POST /t HTTP/1.1\r\n" + HOST + JSON + b"Transfer-Encoding: chunked\r\n\r\n2\n{}\r\n0\r\n\r\n" + SMUGGLED,
        b"POST /t HTTP/1.1\r\n" + HOST + JSON + b"Transfer-Encoding : chunked\r\n\r\n" + SMUGGLED,
        b"GET /t HTTP/1.1\r\n" + HOST + b" folded: x\r\n\r\n" + SMUGGLED,
        b"GET /t HTTP/1.1\n" + HOST + b"\n" + SMUGGLED,
        b"GET /t HTTP/9.9\r\n" + HOST + b"\r\n" + SMUGGLED,
        post(b"/t", b"x" * 200) + SMUGGLED,
        b"CONNECT tools.tidegate.internal:80 HTTP/1.1\r\n" + HOST + b"\r\n" + SMUGGLED,
    ],
)
def test_nothing_is_smuggled(talk: Talk, data: bytes) -> None:
    """SRV-6, GAT-4: what two readers could measure differently is one refusal and the end; nobody reads the rest."""
    found = talk.all(data)
    assert found.count(b"Content-Length: ") == 1
    assert found.split(b" ")[1][:1] in b"45"
    assert talk.inputs == []


def test_a_chunked_body_is_a_body(talk: Talk) -> None:
    """SRV-6: chunks are put together, within the bound; and what is asked for with Expect goes on."""
    chunked = b"POST /u HTTP/1.1\r\n" + HOST + JSON + b"Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"
    found = talk.all(chunked + b"1\r\n{\r\n1\r\n}\r\n0\r\n\r\n")
    assert found.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK")
    assert talk.inputs == [("u", b"{}")]


def test_a_body_without_end_is_bounded(talk: Talk) -> None:
    """SRV-6: chunks that do not end are 413 at the bound."""
    head = b"POST /t HTTP/1.1\r\n" + HOST + JSON + b"Transfer-Encoding: chunked\r\n\r\n"
    assert b" 413 " in talk.all(head + b"32\r\n" + b"x" * 50 + b"\r\n32\r\n" + b"x" * 50 + b"\r\n32\r\n" + b"x" * 50)


@pytest.mark.parametrize("path", [b"/none", b"/t"])
def test_an_answer_before_the_end_of_a_body_is_heard(talk: Talk, path: bytes) -> None:
    """SRV-6, B37: 404 and 413 arrive although the client sends all it has first; then the end, and no reset."""
    assert talk.all(post(path, bytes(4 << 20))).startswith(b"HTTP/1.1 4")
    assert talk.inputs == []


def test_an_upload_that_does_not_end_is_left(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    """SRV-6: after the answer so many bytes are thrown away, and no more."""
    monkeypatch.setattr(http, "_LAST_BYTES", 1 << 20)
    with pytest.raises(ConnectionError):
        talk.client.sendall(
            b"POST /t HTTP/1.1\r\n" + HOST + JSON + b"Content-Length: 999999999\r\n\r\n" + bytes(64 << 20)
        )


def test_a_head_that_does_not_come_is_not_waited_for(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    """SRV-6: a client that begins a head and stops gets 408."""
    monkeypatch.setattr(http, "HEAD_SECONDS", 0.2)
    assert b"HTTP/1.1 408 " in talk.all(b"GET / HT", end=False)


def test_the_end_of_the_task_ends_it(talk: Talk) -> None:
    """SRV-6: an idle connection ends with the task."""
    talk.life.close()
    assert talk.client.recv(1) == b""


def test_http_1_0_gets_an_answer_and_the_end(talk: Talk) -> None:
    """SRV-6: no keep-alive that was not asked for."""
    found = talk.all(b"GET / HTTP/1.0\r\n" + HOST + b"\r\n", end=False)
    assert found.startswith(b"HTTP/1.1 200 OK")
    assert b"Connection: close" in found


def test_mcp_is_spoken(talk: Talk) -> None:
    """SRV-6: a call over MCP, and a notification gets 202 without a body."""
    note = b'{"jsonrpc": "2.0", "method": "notifications/initialized"}'
    call = b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "t", "arguments": {"n": 1}}}'
    accept = JSON + b"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-06-18\r\n"
    first, second = talk.all(post(b"/mcp", note, accept) + post(b"/mcp", call, accept)).split(b"HTTP/1.1 ")[1:]
    assert first.startswith(b"202 Accepted\r\nContent-Length: 0\r\n")
    found = json.loads(second.partition(b"\r\n\r\n")[2])
    assert (found["id"], found["result"]["content"][0]["text"]) == (7, '{"done": true}')
    assert talk.inputs == [("t", b'{"n":1}')]
