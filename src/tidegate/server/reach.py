"""Ways to reach a person beside pages and terminals: notifications on the desktop, and a webhook (ASK-5).

They follow the settings while the server runs. What was given on the command line of `serve` holds for that server,
and the settings cannot change it. The key of the webhook lies in the folder of the keys, which no task sees; the API
takes one and never gives one.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from typing import TYPE_CHECKING, Protocol

from tidegate.journal.sinks.signature import LONGEST_KEY, SHORTEST_KEY, read_key
from tidegate.journal.sinks.target import Target
from tidegate.model.errors import StartError
from tidegate.model.question import NO_TERMS, Answer
from tidegate.questions.shape import question_shape
from tidegate.questions.table import OPEN
from tidegate.runtime.state import key_folder, write_private
from tidegate.server.notifier import Notifier, find_notifier
from tidegate.server.webhook import Webhook
from tidegate.state.settings import SettingError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from tidegate.model.question import Question
    from tidegate.server.serve import Server
    from tidegate.state.settings import Settings

KEY_NAME = "webhook.key"


class Reach(Protocol):
    """A notifier or a webhook."""

    def present(self) -> bool:
        """Whether somebody can be reached by it (ASK-4). On any thread."""

    def tell(self, kind: str, question: dict[str, Any]) -> None:
        """Take in what happened to a question (QuestionEvent's kinds). On the loop's thread; never waits."""

    def close(self) -> None:
        """End it."""


class Ways:
    """How a server reaches people now. `url` is its portal's, '' where it listens on no port.

    `notify` False and a `target` are what the command line says. On the loop's thread, but for `present` and `save`.
    """

    def __init__(
        self,
        server: Server,
        environ: Mapping[str, str],
        *,
        notify: bool,
        target: Target | None,
        url: str,
        warn: Callable[[str], None],
    ) -> None:
        self.fixed = tuple(name for name, given in (("notify", not notify), ("webhook", target is not None)) if given)
        self.webhook: Webhook | None = None
        self._server = server
        self._environ = environ
        self._program = find_notifier(environ) if notify else ""
        self._target = target
        self._url = url
        self._warn = warn
        self._key_path = os.path.join(key_folder(server.state), KEY_NAME)
        self._notifier: Notifier | None = None
        self._now: tuple[str, bytes] | None = None  # address and key of the webhook that is there

    @property
    def key_set(self) -> bool:
        """Whether there is a key for the webhook of the settings."""
        return os.path.lexists(self._key_path)

    def all(self) -> tuple[Reach, ...]:
        """Return those that are there. On any thread."""
        return tuple(one for one in (self._notifier, self.webhook) if one is not None)

    def check(self, settings: Settings, key: str | None) -> None:
        """See whether these settings can be, with this new key for the webhook.

        Raises:
            SettingError: when not.
        """
        if key is not None and not SHORTEST_KEY <= len(key.encode()) <= LONGEST_KEY:
            raise SettingError(f"webhook_key: {SHORTEST_KEY} to {LONGEST_KEY} bytes", fix="openssl rand -hex 32")
        if settings.webhook:
            try:
                Target(settings.webhook, b"", name="webhook")
            except StartError as error:
                raise SettingError(error.what, fix=error.fix) from None
            if key is None and not self.key_set:
                raise SettingError("a webhook needs a key, which signs what it is sent", fix="give webhook_key too")
        elif key is not None:
            raise SettingError("a key without a webhook signs nothing", fix="give webhook too")

    def save(self, settings: Settings, key: str | None) -> None:
        """Keep the key, or take it away where there is no webhook any more. On any thread.

        Raises:
            OSError: when it cannot be kept.
        """
        if key is not None:
            write_private(self._key_path, key.encode())
        elif not settings.webhook and self.key_set:
            os.unlink(self._key_path)

    def apply(self, settings: Settings) -> None:
        """Reach people as these settings say from now on."""
        if settings.notify and self._program and self._notifier is None:
            self._notifier = Notifier(
                self._program, self._environ, seen=self._server.presence.present, answer=self._answer
            )
        elif not settings.notify and self._notifier is not None:
            self._notifier.close()
            self._notifier = None
        target = self._target or self._wanted(settings)
        now = (target.url, target.key) if target is not None else None
        if now == self._now:
            return
        self._now = now
        if self.webhook is not None:
            self.webhook.close()
        self.webhook = self._made(target) if target is not None else None
        for question in self._server.desk.questions() if self.webhook is not None else ():
            if question.state in OPEN and self.webhook is not None:
                self.webhook.tell("opened", question_shape(question, ""))  # it can answer those that wait already

    def close(self) -> None:
        """End all of them."""
        for one in self.all():
            one.close()

    def _wanted(self, settings: Settings) -> Target | None:
        if not settings.webhook:
            return None
        try:
            return Target(settings.webhook, read_key(self._key_path, "the webhook's key"), name="webhook")
        except StartError as error:
            self._warn(f"no webhook: {error}")
            return None

    def _made(self, target: Target) -> Webhook:
        return Webhook(
            target,
            answer_url=f"{self._url}/api/webhook/answer" if self._url else "",
            portal=self._url,
            wall=self._server.wall,
            secret=lambda: secrets.token_urlsafe(32),
            sleep=asyncio.sleep,
            warn=self._warn,
        )

    async def _answer(self, number: int, answer: Answer) -> Question:
        return await self._server.answer(number, answer, NO_TERMS, "notification")


def reach_out(
    server: Server,
    environ: Mapping[str, str],
    *,
    notify: bool,
    target: Target | None,
    url: str,
    warn: Callable[[str], None],
) -> None:
    """Have a server reach people by what there is, as its settings say. `url` as in Ways."""
    server.ways = Ways(server, environ, notify=notify, target=target, url=url, warn=warn)
    server.ways.apply(server.settings)
