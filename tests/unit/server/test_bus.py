"""tidegate.server.bus."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.journal.events import event
from tidegate.journal.line import line_of
from tidegate.server import bus as bus_module
from tidegate.server.bus import Bus, Message

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


def _run(act: Callable[[Bus], Awaitable[Any]], **options: int) -> None:
    async def go() -> None:
        bus = Bus("e1", **options)
        bus.bind(asyncio.get_running_loop())
        async with asyncio.timeout(30):
            await act(bus)

    asyncio.run(go())


def _numbers(messages: list[Message] | None) -> list[int]:
    return [message.data["n"] for message in messages or ()]


def test_a_subscriber_sees_what_comes_in_its_order() -> None:
    """SRV-1: events have ids that count; what came before is not told to who did not ask for it."""

    async def act(bus: Bus) -> None:
        bus.publish("task", {"n": 0})
        await asyncio.sleep(0.01)
        mine = bus.subscribe()
        assert await mine.next(0.01) == []
        for number in (1, 2):
            bus.publish("task", {"n": number})
        assert await mine.next(5) == [Message("e1-2", "task", {"n": 1}), Message("e1-3", "task", {"n": 2})]
        assert bus.last_id == "e1-3"

    _run(act)


@pytest.mark.parametrize(
    ("last", "expected"),
    [("e1-3", [4, 5]), ("e1-5", []), ("e1-0", [1, 2, 3, 4, 5]), ("e1-99", [])],
)
def test_who_comes_back_gets_what_it_missed(last: str, expected: list[int]) -> None:
    """SRV-1: Last-Event-ID; nothing twice, nothing left out."""

    async def act(bus: Bus) -> None:
        for number in range(1, 6):
            bus.publish("task", {"n": number})
        await asyncio.sleep(0.01)
        mine = bus.subscribe(last)
        assert _numbers(await mine.next(0.01)) == expected
        bus.publish("task", {"n": 6})
        assert _numbers(await mine.next(5)) == [6]

    _run(act)


@pytest.mark.parametrize("last", ["e0-3", "e1-", "e1-x", "", "e1-\u0661", "e1-1", "e1-" + "9" * 19])
def test_what_is_gone_or_of_another_server_is_a_reset(last: str) -> None:
    """SRV-3: after a restart, or too long away, a page reads everything anew, once."""

    async def act(bus: Bus) -> None:
        for number in range(1, 9):
            bus.publish("task", {"n": number})
        await asyncio.sleep(0.01)
        mine = bus.subscribe(last)
        assert await mine.next(0.01) == [Message("e1-8", "reset", {})]
        bus.publish("task", {"n": 9})
        assert _numbers(await mine.next(5)) == [9]

    _run(act, kept=4)


def test_a_slow_subscriber_costs_nothing_and_is_told_to_begin_anew() -> None:
    """DESIGN rule 6: nobody waits for who does not read, and memory has a bound."""

    async def act(bus: Bus) -> None:
        slow, fast = bus.subscribe(), bus.subscribe()
        seen = 0
        for number in range(30):
            bus.publish("task", {"n": number})
            seen += len(await fast.next(5) or ())
        assert seen == 30
        assert [message.kind for message in await slow.next(5) or ()] == ["reset"]

    _run(act, kept=10)


def test_it_may_be_told_from_any_thread() -> None:
    """The gate's thread publishes connections while the loop serves."""

    async def act(bus: Bus) -> None:
        mine = bus.subscribe()
        threads = [
            threading.Thread(target=lambda: [bus.publish("task", {"n": 1}) for _ in range(500)]) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        seen: list[Message] = []
        while len(seen) < 2000:
            seen += await mine.next(5) or ()
        assert [message.id for message in seen] == [f"e1-{number}" for number in range(1, 2001)]
        for thread in threads:
            thread.join()

    _run(act)


def test_connections_are_counted_when_there_are_too_many_and_nothing_else_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """SRV-3: a storm of one task does not push the questions of others out; how many were left out is said."""
    monkeypatch.setattr(bus_module, "PENDING", 3)

    async def act(bus: Bus) -> None:
        mine = bus.subscribe()
        for port in range(1, 6):
            bus.publish("connection", event(port=port, count=port))
        bus.publish("question", {"n": 1})
        messages = await mine.next(5) or []
        assert [(message.kind, message.data.get("port"), message.data.get("left_out")) for message in messages] == [
            ("connection", 1, None),
            ("connection", 2, None),
            ("connection", 3, None),
            ("question", None, None),
            ("connection", None, 9),
        ]
        assert messages[0].data["type"] == "net.connection"

    _run(act)


def test_closing_wakes_who_waits() -> None:
    """SRV-1: a revoked token ends its stream at once."""

    async def act(bus: Bus) -> None:
        mine = bus.subscribe()
        assert bus.subscribers == 1
        asyncio.get_running_loop().call_later(0.02, mine.close)
        assert await mine.next() is None
        assert await mine.next() is None
        assert bus.subscribers == 0

    _run(act)


def test_publishing_after_the_end_of_the_loop_is_harmless() -> None:
    """The gate's thread may record to the last."""
    bus = Bus("e1")

    async def go() -> None:
        bus.bind(asyncio.get_running_loop())

    asyncio.run(go())
    for _ in range(3):
        bus.publish("task", {"n": 1})


def test_what_is_fleeting_is_heard_now_and_not_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """SRV-3: who watches gets each; who comes back after many finds only the last of them, and all else."""
    monkeypatch.setattr(bus_module, "KEPT_FLEETING", 3)

    async def act(bus: Bus) -> None:
        watching = bus.subscribe()
        bus.publish("task", {"n": 0})
        bus.flash("open", {"n": 1})
        assert [message.data["n"] for message in await watching.next() or ()] == [0, 1]
        for number in range(2, 8):
            bus.flash("open", {"n": number})
        bus.publish("task", {"n": 8})
        await asyncio.sleep(0.01)
        late = bus.subscribe(f"{bus.epoch}-0")
        assert [message.data["n"] for message in await late.next() or ()] == [0, 5, 6, 7, 8]
        assert await late.next(0.01) == []
        for number in range(4):
            bus.flash("open", {"n": number})
        await asyncio.sleep(0.01)
        skipping = bus.subscribe(f"{bus.epoch}-2")
        assert [message.data["n"] for message in await skipping.next() or ()] == [8, 1, 2, 3]

    _run(act)


def test_a_line_says_what_it_was_shown_as_while_it_was_open() -> None:
    """SRV-3: `seen` is told and is no part of the record."""

    async def act(bus: Bus) -> None:
        watching = bus.subscribe()
        bus.publish("connection", event())
        bus.publish("connection", event(seen=7))
        first, second = await watching.next() or ()
        assert "seen" not in first.data
        assert second.data == first.data | {"seen": 7}
        assert line_of(event(seen=7)) == line_of(event())

    _run(act)
