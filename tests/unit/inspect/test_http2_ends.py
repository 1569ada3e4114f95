"""Streams end once, and leave nothing shut behind them."""

from __future__ import annotations

import pytest
from h2.events import DataReceived, RequestReceived, StreamReset
from hyperframe.frame import GoAwayFrame

from tests.coded import coded
from tests.unit.inspect.test_http2 import GET, World
from tests.unit.inspect.test_http2_secrets import vault
from tidegate.model.reason import Reason
from tidegate.model.verdict import How


@pytest.mark.parametrize("who", ["client", "site"])
def test_the_window_of_a_stream_that_goes_opens_again(who: str) -> None:
    """GAT-5, RFC 9113 section 5.2.2: 40 streams that are reset with 64 KiB each waiting; the next one still moves."""
    world = World()
    for _ in range(40):
        number = world.ask(GET)
        asked = [event for event in world.seen if isinstance(event, RequestReceived)][-1]
        world.site.send_headers(asked.stream_id, [(":status", "200")])
        for _ in range(8):
            world.site.send_data(asked.stream_id, bytes(16384))  # the client's window takes half of it
        world.turn()
        if who == "client":
            world.client.reset_stream(number)
        else:
            world.site.reset_stream(asked.stream_id)
        world.turn()
        # What the client took is given back by it, as a client does.
        world.client.increment_flow_control_window(world.client.max_inbound_frame_size * 4 - 1)
        world.turn()
    assert world.site.outbound_flow_control_window > 1 << 19
    assert world.middle.streams == 0
    assert len(world.of(StreamReset)) == (40 if who == "site" else 0)


def test_each_is_recorded_once_however_all_of_it_ends() -> None:
    """JRN-1: one that was answered and one that was not, and the destination is gone."""
    world = World()
    world.ask(GET)
    asked = [event for event in world.seen if isinstance(event, RequestReceived)][-1]
    world.site.send_headers(asked.stream_id, [(":status", "200")])
    world.ask(GET)
    world.middle.upstream_ended()
    world.middle.ended(Reason.CLIENT_GONE)
    assert [line.written for line in world.lines] == [
        [(How.INSPECTED, Reason.UPSTREAM_CLOSED)],
        [(How.REFUSED, Reason.UPSTREAM_CLOSED)],
    ]
    assert world.middle.over


@pytest.mark.parametrize("coding", ["", "br"])
def test_what_was_answered_to_the_end_arrives_though_its_destination_is_gone(coding: str) -> None:
    """RFC 9113 section 6.8: it answers and closes; the client's window opens later, and it gets all of it."""
    world = World(secrets=vault())
    world.client._frame_dispatch_table[GoAwayFrame] = lambda _frame: ([], [])  # the library takes it for the end
    number = world.ask(GET)
    text = b"x" * 200_000
    body = coded(text, coding) if coding else text
    world.site.send_headers(1, [(":status", "200"), *([("content-encoding", coding)] if coding else [])])
    for at in range(0, len(body), 16384):
        world.site.send_data(1, body[at : at + 16384])
    world.site.end_stream(1)
    world.turn()
    world.middle.upstream_ended()
    assert not world.middle.over
    got = b""
    for _ in range(40):
        for event in world.of(DataReceived):
            got += event.data
            world.client.acknowledge_received_data(event.flow_controlled_length, number)
        world.heard.clear()
        world.middle.from_client(world.client.data_to_send())
        while world.middle.client_waits or world.middle.hungry:
            world.middle.go_on()
            world.middle.from_client(b"")
        world.heard += world.client.receive_data(world.middle.take_client())
    assert got == text
    assert world.middle.over
    assert world.lines[0].written == [(How.INSPECTED, Reason.ALLOWED)]
