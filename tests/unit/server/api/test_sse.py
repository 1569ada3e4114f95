"""The stream of events, over a real connection."""

from __future__ import annotations

import asyncio
import http.client
import json
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.server.api.running import Whole
from tidegate.server.api import sse
from tidegate.server.api.sse import HEARTBEAT, MAX_STREAMS, Streams, frame
from tidegate.server.bus import Bus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class Stream:
    """One open stream."""

    def __init__(self, whole: Whole, token: str, last_id: str = "") -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", whole.port, timeout=60)
        headers = {"Authorization": f"Bearer {token}"} | ({"Last-Event-ID": last_id} if last_id else {})
        self.connection.request("GET", "/api/events", headers=headers)
        self.answer = self.connection.getresponse()

    def lines(self) -> Iterator[str]:
        while line := self.answer.readline():
            yield line.decode().rstrip("\n")

    def next(self, kind: str) -> tuple[str, Any]:
        """The id and data of the next event of this kind."""
        event_id, found = "", ""
        for line in self.lines():
            name, _, value = line.partition(": ")
            if name == "id":
                event_id = value
            elif name == "event":
                found = value
            elif name == "data" and found == kind:
                return event_id, json.loads(value)
        raise AssertionError(f"the stream ended before {kind}")

    def close(self) -> None:
        self.answer.close()
        self.connection.close()

    def ended(self) -> bool:
        """Wait for the end of the stream."""
        for _ in self.lines():
            pass
        return True


@pytest.fixture
def watch() -> Iterator[Callable[..., Stream]]:
    """Opens streams, and closes them in the end."""
    opened: list[Stream] = []

    def open_one(whole: Whole, token: str, last_id: str = "") -> Stream:
        opened.append(Stream(whole, token, last_id))
        return opened[-1]

    yield open_one
    for stream in opened:
        stream.close()


def _token(whole: Whole, role: str = "owner") -> tuple[int, str]:
    made = whole.send("POST", "/api/tokens", {"name": f"{role} {time.monotonic_ns()}", "role": role}).json
    return made["token"]["id"], made["secret"]


def test_a_frame_is_one_event() -> None:
    """SRV-1: whatever text is in the data, one event is one id, one kind and one line of data."""
    found = frame("task", {"name": "a\n\ndata: b\r\u2028"}, "e-1").decode()
    lines = found.split("\n")
    assert lines[:2] == ["id: e-1", "event: task"]
    assert json.loads(lines[2].removeprefix("data: ")) == {"name": "a\n\ndata: b\r\u2028"}
    assert lines[3:] == ["", ""]
    assert "\r" not in found


def test_events_come_as_they_happen_and_go_on_after_the_last_one_seen(
    whole: Whole, watch: Callable[..., Stream]
) -> None:
    """SRV-1: hello first; each event with its id; who comes back with the last one misses none and gets none twice."""
    _, token = _token(whole)
    stream = watch(whole, token)
    assert stream.answer.getheader("content-type") == "text/event-stream"
    start, _ = stream.next("hello")
    first = whole.task(name="first")
    event_id, data = stream.next("task")
    assert data["id"] == first["id"]
    assert data["state"] == "living"
    stream.close()
    second = whole.task(name="second")
    again = watch(whole, token, event_id)
    assert again.next("task")[1]["id"] == second["id"]
    again.close()
    both = watch(whole, token, start)
    assert [both.next("task")[1]["id"] for _ in range(2)] == [first["id"], second["id"]]


def test_an_id_of_another_server_is_a_reset(whole: Whole, watch: Callable[..., Stream]) -> None:
    """SRV-1: an id that this server does not know gets `reset`, not silence."""
    _, token = _token(whole)
    for last_id in ("other-5", "x", "-", whole.server.bus.epoch + "-x"):
        stream = watch(whole, token, last_id)
        assert stream.next("reset")
        stream.close()


def test_revoking_a_token_ends_its_streams_and_no_others(whole: Whole, watch: Callable[..., Stream]) -> None:
    """SRV-1: a stream ends when its token does; the one beside it goes on."""
    number, token = _token(whole)
    _, other = _token(whole)
    mine, theirs = watch(whole, token), watch(whole, other)
    mine.next("hello")
    theirs.next("hello")
    assert whole.send("DELETE", f"/api/tokens/{number}").status == 200
    assert mine.ended()
    whole.task(name="after")
    assert theirs.next("task")[1]["name"] == "after"


def test_a_stop_ends_all_streams_soon(tmp_path: Path, watch: Callable[..., Stream]) -> None:
    """SRV-1: a server that stops does not wait for those who watch."""
    with Whole(tmp_path) as whole:
        _, token = _token(whole)
        stream = watch(whole, token)
        stream.next("hello")
    assert stream.ended()


def test_an_owner_who_watches_is_there_and_a_viewer_is_not(whole: Whole, watch: Callable[..., Stream]) -> None:
    """ASK-4: only who could answer counts as present."""
    _, viewer = _token(whole, "viewer")
    _, owner = _token(whole)
    watch(whole, viewer).next("hello")
    assert not whole.server.presence.present("t")
    stream = watch(whole, owner)
    stream.next("hello")
    assert whole.server.presence.present("t")


def test_a_quiet_stream_has_heartbeats(
    whole: Whole, watch: Callable[..., Stream], monkeypatch: pytest.MonkeyPatch
) -> None:
    """SRV-1: a comment now and then says that the line lives, and a stream whose reader has gone is given up."""
    monkeypatch.setattr(sse, "HEARTBEAT_SECONDS", 0.05)
    _, token = _token(whole)
    stream = watch(whole, token)
    stream.next("hello")
    lines = stream.lines()
    assert f"{next(line for line in lines if line)}\n\n".encode() == HEARTBEAT
    stream.close()
    until = time.monotonic() + 60
    while whole.server.bus.subscribers and time.monotonic() < until:
        time.sleep(0.02)
    assert not whole.server.bus.subscribers


def test_streams_are_bounded(whole: Whole, watch: Callable[..., Stream]) -> None:
    """SRV-1: one more than may be open is 503, and passes once another has ended."""
    _, token = _token(whole)
    streams = [watch(whole, token) for _ in range(MAX_STREAMS)]
    assert {stream.answer.status for stream in streams} == {200}
    for stream in streams:
        stream.next("hello")
    assert watch(whole, token).answer.status == 503
    other = watch(whole, _token(whole)[1])
    assert other.answer.status == 200  # who has many keeps nobody else out
    other.next("hello")
    streams[0].close()
    until = time.monotonic() + 60
    while whole.server.bus.subscribers == MAX_STREAMS + 1 and time.monotonic() < until:
        whole.task()  # an event makes a stream see that its reader has gone
    assert watch(whole, token).answer.status == 200


def test_a_stream_that_is_closed_while_it_waits_is_closed_in_silence(caplog: pytest.LogCaptureFixture) -> None:
    """SRV-1: a loop that ends under a stream, wherever that waits, leaves no complaint and no subscription."""

    async def connected() -> bool:
        return False

    async def send(_message: Any) -> None:
        """A reader that takes what comes."""

    async def stuck(message: Any) -> None:
        """A reader that takes nothing."""
        if message["type"] == "http.response.body":
            await asyncio.get_running_loop().create_future()

    async def main() -> None:
        bus = Bus("e")
        streams = Streams(bus, lambda _token: True)
        request: Any = SimpleNamespace(headers={}, is_disconnected=connected)
        for sending in (send, stuck):
            stream: Any = streams.respond(request, 1, lambda: None)({"method": "GET"}, send, sending)
            assert isinstance(stream.send(None), asyncio.Future)  # it waits, as it would on a loop
            assert bus.subscribers == 1
            stream.close()  # what becomes of it when the loop is gone
            assert not bus.subscribers

    asyncio.run(main())
    assert not caplog.records


def test_head_begins_no_stream(whole: Whole) -> None:
    """SRV-1: HEAD gets the headers and nothing is subscribed."""
    _, token = _token(whole)
    answer = whole.ask("HEAD", "/api/events", token=token)
    assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream")
    assert not whole.server.bus.subscribers
