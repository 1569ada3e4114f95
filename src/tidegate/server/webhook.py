"""A signed webhook: a chat tool of the operator's hears of questions, and can answer each once (ASK-5).

Each message is one POST of JSON to the operator's own address. `Tidegate-Signature` is `v1=` and the hex HMAC-SHA256,
under the operator's key, of the value of `Tidegate-Timestamp`, a full stop and the body (docs/webhook.md). An opened
question comes with a one-time token for each answer: whoever posts one to `answer_url` has answered that question so,
and all of its tokens are void. Nothing is answered by a GET: chat tools fetch every link that they show.

Rules of the file: nothing here holds up a question. At most `AT_ONCE` messages are on their way and `WAITING` wait;
more are dropped and said. A message is tried `TRIES` times, without redirects. Tokens are kept as hashes.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections import deque
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from tidegate.journal.sinks.signature import signed
from tidegate.model.question import Answer
from tidegate.server.background import start

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tidegate.journal.sinks.target import Reply, Target

AT_ONCE: Final = 4
WAITING: Final = 256
TRIES: Final = 3
PAUSES: Final = (1.0, 5.0)  # seconds between them
_OVER = frozenset(("answered", "expired", "ended"))


class Webhook:
    """See the head of the file. Everything on the loop's thread.

    `answer_url` is where tokens are posted, '' where the server has no port; `portal` is the link to look at.
    """

    def __init__(
        self,
        target: Target,
        *,
        answer_url: str,
        portal: str,
        wall: Callable[[], float],
        secret: Callable[[], str],
        sleep: Callable[[float], Awaitable[None]],
        warn: Callable[[str], None],
    ) -> None:
        self._target = target
        self._answer_url = answer_url
        self._portal = portal
        self._wall = wall
        self._secret = secret
        self._sleep = sleep
        self._warn = warn
        self._tokens: dict[bytes, tuple[int, Answer]] = {}
        self._open: set[int] = set()
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._senders: set[asyncio.Task[Any]] = set()
        self._failing = False

    def present(self) -> bool:
        """Whether somebody can be reached by it (ASK-4). On any thread."""
        return True

    def tell(self, kind: str, question: dict[str, Any]) -> None:
        """Take in what happened to a question; never waits."""
        number = question["id"]
        message: dict[str, Any] = {"event": f"question.{kind}", "question": question, "portal": self._portal}
        if kind == "opened":
            self._open.add(number)
            if self._answer_url:
                message["answer_url"] = self._answer_url
                message["answers"] = {one.value: self._token(number, one) for one in _offered(question)}
        elif kind in _OVER:
            self._open.discard(number)
            self._void(number)
        else:
            return
        if len(self._waiting) >= WAITING:
            self._warn(f"the webhook is too slow: question.{kind} of question {number} is not sent")
            return
        self._waiting.append((number if kind == "opened" else 0, json.dumps(message).encode()))
        if len(self._senders) < AT_ONCE:
            sender = start(self._send_all(), "the webhook")
            self._senders.add(sender)
            sender.add_done_callback(self._senders.discard)

    def redeem(self, token: str) -> tuple[int, Answer] | None:
        """Return which question a token answers, and how; it and the others of that question are void then."""
        found = self._tokens.get(_hash(token))
        if found is not None:
            self._void(found[0])
        return found

    def close(self) -> None:
        """Send nothing any more."""
        self._waiting.clear()
        self._tokens.clear()
        for sender in list(self._senders):
            sender.cancel()

    def _token(self, number: int, answer: Answer) -> str:
        token = self._secret()
        self._tokens[_hash(token)] = number, answer
        return token

    def _void(self, number: int) -> None:
        self._tokens = {key: value for key, value in self._tokens.items() if value[0] != number}

    async def _send_all(self) -> None:
        while self._waiting:
            number, body = self._waiting.popleft()
            await self._send(number, body)

    async def _send(self, number: int, body: bytes) -> None:
        why = ""
        for attempt in range(TRIES):
            if attempt:
                await self._sleep(PAUSES[attempt - 1])
            if number and number not in self._open:
                return  # it was answered meanwhile, and that is told by itself
            try:
                headers = signed(self._target.key, int(self._wall()), body)
                status = (await _in_passing(self._target.post, body, headers)).status
            except (OSError, http.client.HTTPException) as error:
                why = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
                continue
            if 200 <= status < 300:
                self._failing = False
                return
            why = f"it answers {status}"
            if 300 <= status < 500 and status != http.client.TOO_MANY_REQUESTS:
                break  # the same again would be no better
        if not self._failing:
            self._failing = True  # said once, until it works again
            self._warn(f"the webhook does not take messages: {why}")


async def _in_passing(call: Callable[[bytes, dict[str, str]], Reply], body: bytes, headers: dict[str, str]) -> Reply:
    """Return what a call gives that may block for long, in a thread that nobody waits for at the end."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[Reply] = loop.create_future()

    def settle(reply: Reply) -> None:
        if not result.done():
            result.set_result(reply)

    def fail(error: Exception) -> None:
        if not result.done():
            result.set_exception(error)

    def run() -> None:
        with suppress(RuntimeError):  # the server has ended meanwhile
            try:
                reply = call(body, headers)
            except Exception as error:  # noqa: BLE001  it is raised where it is awaited
                loop.call_soon_threadsafe(fail, error)
            else:
                loop.call_soon_threadsafe(settle, reply)

    threading.Thread(target=run, name="webhook", daemon=True).start()
    return await result


def _offered(question: dict[str, Any]) -> list[Answer]:
    return [one for one in Answer if one is not Answer.REMEMBER or not question["no_remember"]]


def _hash(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogatepass")).digest()
