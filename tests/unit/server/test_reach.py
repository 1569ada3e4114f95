"""tidegate.server.reach: what a server is given; notifications and webhook are proved in their own files."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.unit.server.kit import Front, policy, served, until
from tests.unit.server.test_webhook import Receiver
from tidegate.journal.sinks.signature import read_key
from tidegate.journal.sinks.target import Target
from tidegate.server.reach import Ways, reach_out
from tidegate.state.settings import SettingError, Settings

if TYPE_CHECKING:
    from tidegate.server.serve import Server

KEY = "0123456789abcdef"


@pytest.mark.parametrize("webhook", [False, True])
def test_a_webhook_makes_somebody_present(tmp_path: Path, webhook: bool) -> None:
    """ASK-4: with one, `--wait` waits; without any way to a person it does not."""
    key = tmp_path / "key"
    key.write_text("0123456789abcdef")
    key.chmod(0o600)
    target = Target("http://127.0.0.1:9/", read_key(str(key))) if webhook else None

    async def go(server: Server) -> None:
        reach_out(server, {}, notify=True, target=target, url="http://127.0.0.1:1", warn=print)
        assert server._present("t1") is webhook
        assert server.ways is not None
        assert (server.ways.webhook is not None) is webhook
        assert server.ways.fixed == (("webhook",) if webhook else ())

    served(tmp_path, go)


def test_the_webhook_follows_the_settings_and_is_there_after_a_restart(tmp_path: Path) -> None:
    """ASK-5, SRV-2: what waits already is posted when it is set, with its key; the next server has it; none ends it."""
    with Receiver() as receiver:

        async def first(server: Server) -> None:
            reach_out(server, {}, notify=True, target=None, url="http://127.0.0.1:1", warn=print)
            assert server.ways is not None
            front = await Front.open(server, tmp_path, rules=policy(ask=("a.test:443",)), ask="wait")
            server.presence.seen()
            asking = asyncio.create_task(front.asks("a.test:443"))  # noqa: TID251
            await until(lambda: bool(server.desk.questions()))
            settings = server.store.patch_settings({"webhook": receiver.url})
            server.ways.save(settings, KEY)
            server.settings_changed(settings, "me")
            await until(lambda: len(receiver.got) == 1)
            assert server._present("t1")
            asking.cancel()

        async def second(server: Server) -> None:
            reach_out(server, {}, notify=True, target=None, url="http://127.0.0.1:1", warn=print)
            assert server.ways is not None
            hook = server.ways.webhook
            assert hook is not None
            server.settings_changed(server.store.patch_settings({"wait_seconds": 120}), "me")
            assert server.ways.webhook is hook  # another setting leaves it, and its tokens, alone
            settings = server.store.patch_settings({"webhook": ""})
            server.ways.save(settings, None)
            server.settings_changed(settings, "me")
            assert server.ways.webhook is None
            assert not server.ways.key_set

        served(tmp_path, first)
        served(tmp_path, second)


@pytest.mark.parametrize(
    ("webhook", "key", "says"),
    [
        ("https://a.test/", None, "needs a key"),
        ("https://a.test/", "short", "16 to 4096 bytes"),
        ("http://a.test/", KEY, "http is read by others"),
        ("https://u:p@a.test/", KEY, "has a user or a password in it"),
        ("", KEY, "signs nothing"),
        ("https://a.test/", KEY, ""),
    ],
)
def test_a_webhook_that_cannot_be_is_refused(tmp_path: Path, webhook: str, key: str | None, says: str) -> None:
    """SRV-2, HLD-16: one line with what to give instead; the last one passes."""

    async def go(server: Server) -> None:
        ways = Ways(server, {}, notify=True, target=None, url="", warn=print)
        if says:
            with pytest.raises(SettingError, match=says):
                ways.check(Settings(webhook=webhook), key)
        else:
            ways.check(Settings(webhook=webhook), key)

    served(tmp_path, go)


def test_a_key_that_is_gone_is_said_and_posts_nothing(tmp_path: Path) -> None:
    """HLD-7: no webhook without its key, and never under another one."""
    said: list[str] = []

    async def go(server: Server) -> None:
        server.settings = server.store.patch_settings({"webhook": "https://a.test/"})
        reach_out(server, {}, notify=True, target=None, url="", warn=said.append)
        assert server.ways is not None
        assert server.ways.webhook is None

    served(tmp_path, go)
    assert len(said) == 1
    assert "the webhook's key" in said[0]
