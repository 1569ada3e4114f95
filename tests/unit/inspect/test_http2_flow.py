"""Bytes of streams move as far as windows go, and a turn's measure."""

from __future__ import annotations

from h2.events import DataReceived, RequestReceived
from h2.settings import SettingCodes

from tests.coded import coded
from tests.unit.inspect.test_http2 import GET, World
from tests.unit.inspect.test_http2_secrets import BEARER, Talk, wide
from tidegate.inspect.http2_flow import MOST_PIECES

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
