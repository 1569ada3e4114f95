"""Streams end once, and leave nothing shut behind them."""

from __future__ import annotations

import pytest
from h2.events import RequestReceived, StreamReset

from tests.unit.inspect.test_http2 import GET, World
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
