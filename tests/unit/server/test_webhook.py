"""tidegate.server.webhook against a real HTTP server on loopback, in a real server with real questions."""

from __future__ import annotations

import asyncio
import http.server
import json
import os
import re
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest

from tests.unit.server.kit import Front, policy, served, until
from tidegate.journal.sinks.signature import read_key, signed
from tidegate.journal.sinks.target import Target
from tidegate.model.errors import StartError
from tidegate.model.question import NO_TERMS, Answer
from tidegate.server.reach import Ways
from tidegate.server.webhook import TRIES, WAITING, Webhook

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.server.serve import Server

KEY = b"0123456789abcdef0123456789abcdef"
RULES = policy(ask=("*.test",))
DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "webhook.md"


class Receiver:
    """A chat tool's side: keeps what it is sent, and answers with these statuses, the last one again and again."""

    def __init__(self, *statuses: int) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.hold = threading.Event()
        self.hold.set()
        receiver, waiting = self, list(statuses or (204,))

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.got.append((dict(self.headers), body))
                receiver.hold.wait(20)
                self.send_response(waiting.pop(0) if len(waiting) > 1 else waiting[0])
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                return

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/hook?room=1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.got]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.hold.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def key_file(tmp_path: Path) -> str:
    """A key that only its owner reads."""
    path = tmp_path / "key"
    path.write_bytes(KEY + b"\n")
    path.chmod(0o600)
    return str(path)


async def _no_sleep(_seconds: float) -> None:
    await asyncio.sleep(0)


def hook(url: str, key_file: str, warn: Callable[[str], None], *, answer_url: str = "http://127.0.0.1:1/x") -> Webhook:
    """A webhook to this address."""
    numbers = iter(range(10_000))
    return Webhook(
        Target(url, read_key(key_file)),
        answer_url=answer_url,
        portal="http://127.0.0.1:1",
        wall=time.time,  # noqa: TID251  as in the server
        secret=lambda: f"secret-{next(numbers)}",
        sleep=_no_sleep,
        warn=warn,
    )


def attached(server: Server, webhook: Webhook) -> Webhook:
    """Let a server use it."""
    server.ways = Ways(server, {}, notify=False, target=None, url="", warn=print)
    server.ways.webhook = webhook
    return webhook


def question(number: int = 1, **changes: Any) -> dict[str, Any]:
    """As much of a question as a webhook reads."""
    return {"id": number, "task": "t1", "host": "a.test", "port": 443, "no_remember": ""} | changes


def test_a_question_is_posted_signed_and_its_end_too(tmp_path: Path, key_file: str) -> None:
    """ASK-5: one message each, whose signature is over timestamp and body; the key is not in it."""
    with Receiver() as receiver:

        async def go(server: Server) -> None:
            attached(server, hook(receiver.url, key_file, print))
            front = await Front.open(server, tmp_path, rules=RULES, ask="wait")
            asking = asyncio.create_task(front.asks("a.test:443"))  # noqa: TID251
            await until(lambda: len(receiver.got) == 1)
            number = receiver.messages[0]["question"]["id"]
            await server.answer(number, Answer.DENY, NO_TERMS, "me")
            assert b"a person refused it" in await asking
            await until(lambda: len(receiver.got) == 2)

        served(tmp_path, go)
        opened, over = receiver.messages
        assert (opened["event"], opened["question"]["host"], opened["question"]["port"]) == (
            "question.opened",
            "a.test",
            443,
        )
        assert set(opened["answers"]) == {"allow", "task", "remember", "deny", "deny-task"}
        assert (over["event"], over["question"]["answer"], "answers" in over) == ("question.answered", "deny", False)
        for headers, body in receiver.got:
            assert (
                signed(KEY, int(headers["Tidegate-Timestamp"]), body)["Tidegate-Signature"]
                == headers["Tidegate-Signature"]
            )
            assert KEY not in body


def test_a_token_answers_its_question_once_and_voids_the_others(tmp_path: Path, key_file: str) -> None:
    """ASK-5: bound to the question and the answer; a second use, another token and a guess are nothing."""
    with Receiver() as receiver:

        async def go(server: Server) -> None:
            webhook = attached(server, hook(receiver.url, key_file, print))
            front = await Front.open(server, tmp_path, rules=RULES, ask="wait")
            asking = asyncio.create_task(front.asks("a.test:443"))  # noqa: TID251
            await until(lambda: len(receiver.got) == 1)
            tokens = receiver.messages[0]["answers"]
            assert webhook.redeem("secret-99") is None
            found = webhook.redeem(tokens["deny"])
            assert found == (receiver.messages[0]["question"]["id"], Answer.DENY)
            assert webhook.redeem(tokens["deny"]) is None
            assert webhook.redeem(tokens["allow"]) is None
            await server.answer(*found, NO_TERMS, "webhook")
            assert b"a person refused it" in await asking

        served(tmp_path, go)


def test_an_answer_from_elsewhere_voids_the_tokens(key_file: str) -> None:
    """ASK-5: what is over cannot be answered; the tokens of another question stay good."""

    async def go() -> None:
        with Receiver() as receiver:
            webhook = hook(receiver.url, key_file, print)
            webhook.tell("opened", question(1))
            webhook.tell("opened", question(2, no_remember="the home folder"))
            await until(lambda: len(receiver.got) == 2)
            by_id = {message["question"]["id"]: message["answers"] for message in receiver.messages}
            assert "remember" not in by_id[2]
            webhook.tell("expired", question(1))
            webhook.tell("changed", question(2))
            assert webhook.redeem(by_id[1]["allow"]) is None
            assert webhook.redeem(by_id[2]["allow"]) == (2, Answer.ALLOW)
            webhook.close()

    asyncio.run(go())


@pytest.mark.parametrize(
    ("statuses", "tries"),
    [((204,), 1), ((500, 500, 200), 3), ((500,), TRIES), ((429, 200), 2), ((404,), 1), ((302,), 1)],
)
def test_tries_are_bounded_and_redirects_not_followed(key_file: str, statuses: tuple[int, ...], tries: int) -> None:
    """ASK-5: again where that may help; said once where it does not."""
    warned: list[str] = []

    async def go() -> None:
        with Receiver(*statuses) as receiver:
            webhook = hook(receiver.url, key_file, warned.append)
            webhook.tell("opened", question())
            await until(lambda: len(receiver.got) == tries and not webhook._senders)
            assert len(receiver.got) == tries

    asyncio.run(go())
    assert len(warned) == (statuses[-1] >= 300)


def test_a_receiver_that_hangs_holds_up_nothing(tmp_path: Path, key_file: str) -> None:
    """ASK-5: the question opens and is answered meanwhile, and the server stops at once."""
    with Receiver() as receiver:
        receiver.hold.clear()

        async def go(server: Server) -> None:
            attached(server, hook(receiver.url, key_file, print))
            front = await Front.open(server, tmp_path, rules=RULES, ask="wait")
            asking = [asyncio.create_task(front.asks(f"{name}.test:443")) for name in "abcdefgh"]  # noqa: TID251
            await until(lambda: len(server.desk.questions()) == 8)
            for one in server.desk.questions():
                await server.answer(one.id, Answer.DENY, NO_TERMS, "me")
            for one in asking:
                assert b"a person refused it" in await one

        served(tmp_path, go)


def test_what_waits_is_bounded(key_file: str) -> None:
    """ASK-5: more than WAITING messages are dropped, and that is said."""
    warned: list[str] = []

    async def go() -> None:
        with Receiver() as receiver:
            receiver.hold.clear()
            webhook = hook(receiver.url, key_file, warned.append)
            for number in range(WAITING + 50):
                webhook.tell("ended", question(number))
            assert len(webhook._waiting) <= WAITING
            assert warned
            webhook.close()

    asyncio.run(go())


def test_without_a_port_there_is_nothing_to_answer_with(key_file: str) -> None:
    """SRV-1: a server with no listener sends no token."""

    async def go() -> None:
        with Receiver() as receiver:
            webhook = hook(receiver.url, key_file, print, answer_url="")
            webhook.tell("opened", question())
            await until(lambda: len(receiver.got) == 1)
            assert not {"answers", "answer_url"} & set(receiver.messages[0])
            webhook.close()

    asyncio.run(go())


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("ftp://a.test/", "not a plain URL"),
        ("a.test", "not a plain URL"),
        ("https://", "not a plain URL"),
        ("https://me:pw@a.test/", "has a user or a password in it"),
        ("https://a.test:99999/", "not a URL"),
        ("http://a.test/", "read by others"),
        ("http://127.0.0.1.a.test/", "read by others"),
        ("https://a.test/x y", "cannot have"),
        ("https://a.test/\r\nX: y", "cannot have"),
    ],
)
def test_addresses_that_cannot_be_used(key_file: str, url: str, says: str) -> None:
    """ASK-5: one line at the start; tokens never travel in the clear beyond this machine."""
    with pytest.raises(StartError, match=says):
        Target(url, read_key(key_file))


@pytest.mark.parametrize("url", ["https://a.test/hook", "http://127.0.0.1:8080/", "http://[::1]/", "http://localhost"])
def test_addresses_that_can(key_file: str, url: str) -> None:
    """The neighbours."""
    assert Target(url, read_key(key_file)).key == KEY


def test_the_key_is_a_secret(tmp_path: Path) -> None:
    """JRN-5: a file that others read, one that is not there and one that is too short are refused."""
    path = tmp_path / "key"
    with pytest.raises(StartError, match="cannot be read"):
        Target("https://a.test/", read_key(str(path)))
    path.write_bytes(b"short")
    path.chmod(0o600)
    with pytest.raises(StartError, match="16 to 4096"):
        Target("https://a.test/", read_key(str(path)))
    path.write_bytes(KEY)
    path.chmod(0o640)
    with pytest.raises(StartError, match="read by others"):
        Target("https://a.test/", read_key(str(path)))


def test_the_example_of_the_documentation_verifies(key_file: str) -> None:
    """ASK-5: it takes what is sent, and turns away another body, another key, an old time and no header at all."""
    code = re.search(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert code is not None
    space: dict[str, Any] = {}
    exec(code[1], space)
    is_genuine = space["is_genuine"]
    now = int(time.time())  # noqa: TID251  the example looks at it
    headers = signed(KEY, now, b"body")
    assert is_genuine(KEY, headers, b"body")
    assert not is_genuine(KEY, headers, b"Body")
    assert not is_genuine(KEY[:-1] + b"x", headers, b"body")
    assert not is_genuine(KEY, signed(KEY, now - 400, b"body"), b"body")
    assert not is_genuine(KEY, headers | {"Tidegate-Timestamp": str(now + 1)}, b"body")
    assert not is_genuine(KEY, {}, b"body")
    assert os.path.exists(key_file)
