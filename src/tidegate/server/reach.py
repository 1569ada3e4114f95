"""Ways to reach a person beside pages and terminals: notifications on the desktop, and a webhook."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Protocol

from tidegate.model.question import NO_TERMS, Answer
from tidegate.server.notifier import Notifier, find_notifier
from tidegate.server.webhook import Webhook

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from tidegate.model.question import Question
    from tidegate.server.serve import Server
    from tidegate.server.webhook import Target


class Reach(Protocol):
    """A notifier or a webhook."""

    def present(self) -> bool:
        """Whether somebody can be reached by it (ASK-4). On any thread."""

    def tell(self, kind: str, question: dict[str, Any]) -> None:
        """Take in what happened to a question (QuestionEvent's kinds). On the loop's thread; never waits."""

    def close(self) -> None:
        """End it."""


def reach_out(
    server: Server,
    environ: Mapping[str, str],
    *,
    notify: bool,
    target: Target | None,
    url: str,
    warn: Callable[[str], None],
) -> None:
    """Have a server reach people by what there is. `url` is its portal's, '' where it listens on no port."""
    found: list[Reach] = []
    program = find_notifier(environ) if notify else ""
    if program:

        async def answer(number: int, answer: Answer) -> Question:
            return await server.answer(number, answer, NO_TERMS, "notification")

        found.append(Notifier(program, environ, seen=server.presence.present, answer=answer))
    if target is not None:
        server.webhook = Webhook(
            target,
            answer_url=f"{url}/api/webhook/answer" if url else "",
            portal=url,
            wall=server.wall,
            secret=lambda: secrets.token_urlsafe(32),
            sleep=asyncio.sleep,
            warn=warn,
        )
        found.append(server.webhook)
    server.others = tuple(found)
