"""Bytes of streams move as far as windows go, and a turn's measure."""

from __future__ import annotations

from typing import Any

import pytest
from h2.events import DataReceived, RequestReceived
from h2.settings import SettingCodes

from tests.coded import coded
from tests.unit.inspect.test_http2 import GET, World
from tests.unit.inspect.test_http2_secrets import BEARER, Talk, wide
from tidegate.inspect.http2_flow import MOST_PIECES
from tidegate.model.reason import Reason
from tidegate.model.verdict import How

GROWS = coded(bytes(900_000), "br")


def test_what_a_coding_makes_is_passed_on_turn_by_turn() -> None:
    """GAT-5: twenty answers of a few bytes grow to 18 MB; no turn makes more than its measure, and all of it comes."""
    talk = wide()
    numbers = [talk.ask([*GET, BEARER]) for _ in range(20)]
    for event in [event for event in talk.seen if isinstance(event, RequestReceived)]:
        talk.site.send_headers(event.stream_id, [(":status", "200"), ("content-encoding", "br")])
        talk.site.send_data(event.stream_id, GROWS, end_stream=True)
    data, turns = talk.site.data_to_send(), []
    while data or talk.middle.hungry or talk.middle.upstream_waits:
        if talk.middle.hungry:
            talk.middle.go_on()
        else:
            talk.middle.from_upstream(data)
            data = b""
        turns.append(len(talk.middle.take_client()))
    assert max(turns) < (MOST_PIECES + 2) << 17
    assert sum(turns) > len(numbers) * 900_000
    assert talk.middle.streams == 0


def test_a_client_with_a_closed_window_gets_none_of_it() -> None:
    """GAT-5: and what waits for it is bounded."""
    shut = Talk(mine={SettingCodes.INITIAL_WINDOW_SIZE: 0})
    shut.ask([*GET, BEARER])
    shut.answer([("content-encoding", "br")], GROWS)
    assert shut.body() == b""
    assert sum(len(one) for one in shut.middle._by_client[1].down.waiting) < 1 << 18


def test_a_stream_that_went_while_it_was_hungry_is_left_alone() -> None:
    """RFC 9113 section 5.4.2: what waited for the next turn is gone with it."""
    talk = wide()
    number = talk.ask([*GET, BEARER])
    talk.site.send_headers(1, [(":status", "200"), ("content-encoding", "br")])
    talk.site.send_data(1, GROWS, end_stream=True)
    talk.middle.from_upstream(talk.site.data_to_send())
    while talk.middle.upstream_waits and not talk.middle.hungry:
        talk.middle.from_upstream(b"")
    assert talk.middle.hungry
    talk.client.reset_stream(number)
    talk.middle.from_client(talk.client.data_to_send())
    while talk.middle.client_waits:
        talk.middle.from_client(b"")
    talk.middle.go_on()
    assert (talk.middle.hungry, talk.middle.streams) == (False, 0)


def test_what_is_not_looked_through_goes_as_the_window_opens() -> None:
    """RFC 9113 section 5.2: 200 KB through a window of 64 KiB, and the destination's opens as they go."""
    world = World()
    world.ask(GET)
    world.site.send_headers(1, [(":status", "200")])
    sent = 0
    while sent < 200_000:
        room = min(world.site.local_flow_control_window(1), 16384)
        world.site.send_data(1, bytes(room))
        sent += room
        world.turn()
        for event in world.of(DataReceived):
            world.client.acknowledge_received_data(event.flow_controlled_length, 1)
        world.heard.clear()
        world.turn()
    assert world.site.local_flow_control_window(1) > 1 << 16


def ends(events: list[Any]) -> list[tuple[int, bool]]:
    """Return the size of each frame of data, and whether it was the last of its stream."""
    data = [event for event in events if isinstance(event, DataReceived)]
    return [(len(event.data), event.stream_ended is not None) for event in data]


@pytest.mark.parametrize("size", [1, 16384, 40_000])
def test_an_end_that_came_with_the_last_bytes_goes_with_them(size: int) -> None:
    """RFC 9113 section 8.1: both ways, of one frame or more; no empty frame is made of it. One that was sent stays."""
    world = World()
    number = world.ask([(":method", "PUT"), *GET[1:]], ends=False)
    for at in range(0, size, 16384):
        part = min(16384, size - at)
        world.client.send_data(number, bytes(part), end_stream=at + part == size)
    world.turn()
    whole = [(min(16384, size - at), at + 16384 >= size) for at in range(0, size, 16384)]
    assert ends(world.seen) == whole
    world.site.send_headers(1, [(":status", "200"), ("content-length", str(size))])
    for at in range(0, size, 16384):
        part = min(16384, size - at)
        world.site.send_data(1, bytes(part), end_stream=at + part == size)
    world.turn()
    assert ends(world.heard) == whole
    assert (world.middle.streams, world.lines[0].written) == (0, [(How.INSPECTED, Reason.ALLOWED)])
    world.ask(GET)
    world.heard.clear()
    world.site.send_headers(3, [(":status", "200")])
    world.site.send_data(3, b"open")
    world.turn()
    assert ends(world.heard) == [(4, False)]
    world.site.end_stream(3)
    world.turn()
    assert ends(world.heard) == [(4, False), (0, True)]


def test_an_end_that_the_window_keeps_back_comes_with_the_rest() -> None:
    """RFC 9113 section 5.2: what waits for a window is not cut short by an end that is known already."""
    world = World(mine={SettingCodes.INITIAL_WINDOW_SIZE: 10})
    world.ask(GET)
    world.site.send_headers(1, [(":status", "200")])
    world.site.send_data(1, bytes(25), end_stream=True)
    world.turn()
    assert ends(world.heard) == [(10, False)]
    for expected in ([(10, False)], [(5, True)]):
        world.heard.clear()
        world.client.increment_flow_control_window(10, 1)
        world.turn()
        assert ends(world.heard) == expected
    assert world.middle.streams == 0
