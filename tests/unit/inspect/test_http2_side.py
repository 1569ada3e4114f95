"""One side of HTTP/2: its bounds are said first, and kept."""

from __future__ import annotations

import gc
import weakref

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, RemoteSettingsChanged, RequestReceived, ResponseReceived
from h2.exceptions import H2Error, InvalidSettingsValueError
from h2.settings import SettingCodes, Settings
from hpack import Encoder
from hyperframe.frame import GoAwayFrame, HeadersFrame
from hypothesis import given
from hypothesis import strategies as st

from tidegate.inspect.http2_side import HEADER_TABLE, STREAM_WINDOW, STREAMS, WINDOW, _Settings, make_side
from tidegate.model.limits import DEFAULT_LIMITS

GET = [(":method", "GET"), (":scheme", "https"), (":authority", "a.test"), (":path", "/")]


def other(*, client: bool) -> H2Connection:
    """The library's own, on the other side."""
    made = H2Connection(H2Configuration(client_side=client))
    made.initiate_connection()
    return made


@pytest.mark.parametrize("client", [True, False])
def test_bounds_are_said_first(client: bool) -> None:
    """INS-3: windows, headers, streams; no push, and no WebSockets before the destination has them."""
    side, peer = make_side(DEFAULT_LIMITS, client=client), other(client=not client)
    (changed,) = [one for one in peer.receive_data(side.data_to_send()) if isinstance(one, RemoteSettingsChanged)]
    said = {code: setting.new_value for code, setting in changed.changed_settings.items()}
    assert said[SettingCodes.MAX_HEADER_LIST_SIZE] == DEFAULT_LIMITS.header_bytes
    assert said[SettingCodes.INITIAL_WINDOW_SIZE] == STREAM_WINDOW
    assert peer.outbound_flow_control_window == WINDOW
    if client:
        assert said[SettingCodes.ENABLE_PUSH] == 0
    else:
        assert said[SettingCodes.MAX_CONCURRENT_STREAMS] == STREAMS
        assert said[SettingCodes.ENABLE_CONNECT_PROTOCOL] == 0


def test_a_goaway_is_no_end() -> None:
    """INS-3: it is heard, and what comes behind it is heard too."""
    side, peer = make_side(DEFAULT_LIMITS, client=False), other(client=True)
    side.hear(peer.data_to_send())
    (event,) = side.hear(GoAwayFrame(0, last_stream_id=3, error_code=0).serialize())
    assert isinstance(event, ConnectionTerminated)
    assert event.last_stream_id == 3
    peer.ping(bytes(8))
    assert side.hear(peer.data_to_send())


def test_a_frame_beyond_its_bound_is_not_waited_for() -> None:
    """INS-3: a length of 16 MiB takes no 16 MiB of memory."""
    side, peer = make_side(DEFAULT_LIMITS, client=False), other(client=True)
    side.hear(peer.data_to_send())
    with pytest.raises(H2Error):
        side.hear(b"\xff" * 9)


def test_the_table_of_headers_does_not_grow_with_what_the_other_side_offers() -> None:
    """INS-3: each header is looked for in all of it; who offers a gigabyte gets headers that can be read."""
    side, peer = make_side(DEFAULT_LIMITS, client=False), other(client=True)
    peer.update_settings({SettingCodes.HEADER_TABLE_SIZE: 1 << 30})
    side.hear(peer.data_to_send())
    peer.receive_data(side.data_to_send())
    assert side.encoder.header_table_size == HEADER_TABLE
    for number in range(1, 41, 2):
        peer.send_headers(number, GET, end_stream=True)
        side.hear(peer.data_to_send())
        long = "x" * 1000
        side.send_headers(number, [(b":status", b"200"), (b"x-%d" % number, long.encode())], end_stream=True)
        (answer,) = [one for one in peer.receive_data(side.data_to_send()) if isinstance(one, ResponseReceived)]
        assert answer.headers[-1] == (f"x-{number}".encode(), long.encode())


def test_of_too_many_fields_only_as_many_are_looked_at_as_show_it() -> None:
    """INS-3: a block of 1,500 fields, a byte each, ends in little more than the bound of them, and is told as such."""
    side, peer = make_side(DEFAULT_LIMITS, client=False), other(client=True)
    side.hear(peer.data_to_send())
    peer.send_headers(1, [*GET, ("x-mark", "y")], end_stream=True)
    side.hear(peer.data_to_send())
    block = peer.encoder.encode([*GET, *[("x-mark", "y")] * 1500])
    assert len(block) < 1600
    frame = HeadersFrame(3, block, flags=["END_HEADERS", "END_STREAM"])
    (asked,) = [one for one in side.hear(frame.serialize()) if isinstance(one, RequestReceived)]
    assert DEFAULT_LIMITS.header_fields < len(asked.headers) < DEFAULT_LIMITS.header_fields + 10
    assert side.too_many(asked.headers)
    frame = HeadersFrame(5, peer.encoder.encode([*GET, *[("x-mark", "y")] * DEFAULT_LIMITS.header_fields]))
    frame.flags |= {"END_HEADERS", "END_STREAM"}
    (asked,) = [one for one in side.hear(frame.serialize()) if isinstance(one, RequestReceived)]
    assert len(asked.headers) == len(GET) + DEFAULT_LIMITS.header_fields
    assert not side.too_many(asked.headers)


@given(st.lists(st.one_of(st.none(), st.tuples(st.sampled_from([1, 2, 3, 4, 5, 6, 8, 99]), st.integers(0, 1 << 25)))))
def test_its_settings_are_the_librarys(steps: list[tuple[int, int] | None]) -> None:
    """INS-3: whatever is set, acknowledged and refused, in any order: only lighter."""
    first = {SettingCodes.MAX_HEADER_LIST_SIZE: 9}
    ours, theirs = _Settings(False, first), Settings(client=False, initial_values=first)
    for step in steps:
        if step is None:
            assert {k: (v.original_value, v.new_value) for k, v in ours.acknowledge().items()} == {
                k: (v.original_value, v.new_value) for k, v in theirs.acknowledge().items()
            }
            continue
        raised = []
        for one in (ours, theirs):
            try:
                one[step[0]] = step[1]
            except InvalidSettingsValueError as error:
                raised.append(str(error))
        assert len(raised) in {0, 2}
        assert len(set(raised)) <= 1
        assert {key: ours.get(key) for key in ours} == {key: theirs.get(key) for key in theirs}


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=60))
def test_its_tables_are_the_librarys(fields: list[tuple[int, int]]) -> None:
    """RFC 7541: what is put into them, found and put out by others: the same bytes, and the same fields."""
    side, encoder = make_side(DEFAULT_LIMITS, client=True), Encoder()
    decoder = make_side(DEFAULT_LIMITS, client=False).decoder
    for name, value in fields:
        header = [(b"x-%d" % name, b"v" * (value * 20) + b"%d" % value)]
        block = side.encoder.encode(header)
        assert block == encoder.encode(header)
        assert [(bytes(n), bytes(v)) for n, v in decoder.decode(block, raw=True)] == header


def test_it_lets_go_of_itself_when_it_is_done() -> None:
    """INS-3: nobody has to look for garbage to get it back."""
    side, peer = make_side(DEFAULT_LIMITS, client=False), other(client=True)
    peer.send_headers(1, GET, end_stream=True)
    assert side.hear(peer.data_to_send())
    kept = weakref.ref(side)
    gc.collect()
    gc.disable()
    try:
        side.done()
        del side
        assert kept() is None
    finally:
        gc.enable()


def test_a_frame_that_nobody_knows_is_passed_over() -> None:
    """RFC 9113 section 4.1: as by the library."""
    side, peer = make_side(DEFAULT_LIMITS, client=False), other(client=True)
    side.hear(peer.data_to_send())
    side.hear(b"\x00\x00\x01\xfe\x00\x00\x00\x00\x00x")
    peer.ping(bytes(8))
    assert [type(event).__name__ for event in side.hear(peer.data_to_send())] == ["PingReceived"]
