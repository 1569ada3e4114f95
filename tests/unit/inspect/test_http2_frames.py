"""What came on HTTP/2, in pieces: whole frames, few at once, nothing lost."""

from __future__ import annotations

import pytest
from h2.exceptions import FrameTooLargeError
from hyperframe.frame import DataFrame, HeadersFrame, PingFrame, SettingsFrame
from hypothesis import given
from hypothesis import strategies as st

from tidegate.inspect.http2_frames import MOST, PREFACE, SETTINGS_BYTES, Frames

PING = PingFrame(0, opaque_data=bytes(8)).serialize()
HEADERS = HeadersFrame(1, b"\x82", flags=["END_HEADERS"]).serialize()


def pieces(frames: Frames) -> list[bytes]:
    """Take all there is."""
    found = []
    while frames.waits:
        found.append(frames.take())
    return found


def test_a_piece_ends_behind_a_header_block_and_after_some_frames() -> None:
    """GAT-11: so the work of one piece is bounded, whatever its bytes name."""
    frames = Frames(0)
    frames.add(PING + HEADERS + HEADERS + PING * (MOST + 1))
    assert pieces(frames) == [PING + HEADERS, HEADERS, PING * MOST, PING]
    assert frames.take() == b""


@given(st.lists(st.sampled_from([PING, HEADERS, DataFrame(1, bytes(40)).serialize()])), st.data())
def test_however_it_comes_it_goes_on_whole_and_in_order(sent: list[bytes], data: st.DataObject) -> None:
    """INS-3: by byte or all at once, behind a client's preface: the same bytes, in whole frames."""
    whole = bytes(PREFACE) + b"".join(sent)
    frames, got, at = Frames(PREFACE), b"", 0
    while at < len(whole):
        step = data.draw(st.integers(1, len(whole) - at))
        frames.add(whole[at : at + step])
        at += step
        got += b"".join(pieces(frames))
    assert got == whole
    frames.add(PING[:-1])
    assert not frames.waits
    assert frames.take() == b""
    frames.add(PING[-1:])
    assert frames.take() == PING


def test_frames_beyond_their_bound_are_errors_at_once_and_what_stands_before_them_comes_first() -> None:
    """INS-3: a length of 16 MiB, and SETTINGS of a thousand entries; SETTINGS as anybody sends them pass."""
    frames = Frames(0)
    frames.add(PING + b"\xff\xff\xff")
    assert pieces(frames) == [PING]
    frames.add(b"\x00\x00\x00\x00\x00\x00")
    assert frames.waits
    with pytest.raises(FrameTooLargeError):
        frames.take()
    usual = SettingsFrame(0, settings=dict.fromkeys(range(1, 11), 1)).serialize()
    frames = Frames(0)
    frames.add(usual)
    assert frames.take() == usual
    frames.add(SettingsFrame(0, settings=dict.fromkeys(range(1, SETTINGS_BYTES), 1)).serialize()[:9])
    with pytest.raises(FrameTooLargeError):
        frames.take()
