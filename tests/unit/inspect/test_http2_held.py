"""Streams that are looked at before the destination hears of them."""

from __future__ import annotations

from tests.unit.inspect.test_http2 import Line
from tidegate.inspect.http2_held import Held, HeldStreams
from tidegate.inspect.model_watch import Guard
from tidegate.model.destination import parse_authority
from tidegate.model.reason import Reason
from tidegate.model.verdict import How, Phase
from tidegate.policy.decide import decide
from tidegate.policy.policy import make_policy

DECISION = decide(make_policy(), parse_authority("api.anthropic.com:443"), Phase.RUNTIME)
HEADERS = [(b":method", b"POST"), (b":path", b"/v1/messages"), (b"content-type", b"application/json")]


def test_without_a_guard_nothing_is_held() -> None:
    """INS-8: none at all, and one that is for other hosts."""
    for guard in (None, Guard([("api.openai.com", 443)])):
        assert HeldStreams(DECISION, guard).look("POST", dict(HEADERS[:2]), HEADERS, empty=False) is None


def test_one_that_is_given_up_gives_its_room_back() -> None:
    """INS-8: and is a line of the journal; one that is not held is somebody else's."""
    guard = Guard([("api.anthropic.com", 443)], room=100)
    streams = HeldStreams(DECISION, guard)
    look = streams.look("POST", dict(HEADERS[:2]), HEADERS, empty=False)
    assert look is not None
    line = Line("POST")
    streams.add(1, Held(HEADERS, line, look))
    look.take(b"x" * 60)
    assert (len(streams), guard.left) == (1, 40)
    assert not streams.gone(3)
    assert streams.gone(1)
    assert (len(streams), guard.left) == (0, 100)
    assert line.written == [(How.REFUSED, Reason.CLIENT_GONE)]


def test_what_is_sent_has_its_own_length() -> None:
    """INS-8: whatever length and coding the one that came had."""
    headers = [*HEADERS, (b"content-length", b"9"), (b"content-encoding", b"zstd"), (b"expect", b"100-continue")]
    look = Guard([("api.anthropic.com", 443)]).look(
        ("api.anthropic.com", 443), "POST", b"/v1/messages", [], socket=False, empty=False
    )
    assert Held(headers, Line("POST"), look).with_length(5) == [*HEADERS, (b"content-length", b"5")]
