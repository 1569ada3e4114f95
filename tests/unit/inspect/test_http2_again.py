"""HTTP/2: the destination's side forgotten while nothing is under way, and made anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, RequestReceived, ResponseReceived, StreamReset
from h2.settings import SettingCodes

from tests.unit.inspect.test_http2 import World
from tidegate.model.destination import parse_authority
from tidegate.model.reason import Reason
from tidegate.model.rule import Layer, Origin, RuleLimits, only
from tidegate.model.verdict import How, Phase, Verdict
from tidegate.policy.decide import decide
from tidegate.policy.policy import make_policy
from tidegate.policy.rows import rule_row

if TYPE_CHECKING:
    from tidegate.model.decision import Decision

GET = [(":method", "GET"), (":scheme", "https"), (":authority", "a.test"), (":path", "/x"), ("x-own", "1" * 50)]
ANSWER = [(":status", "200"), ("server", "s")]


def decision_of(verdict: Verdict = Verdict.ALLOW, path: str = "/**") -> Decision:
    """What a policy says of a.test:443."""
    limits = RuleLimits(requests=only(paths=(path,))) if verdict is Verdict.ALLOW else RuleLimits()
    row = rule_row("a.test:443", verdict, Phase.RUNTIME, "policy", "p:2:2", Origin.WRITTEN, Layer.COMMAND_LINE, limits)
    return decide(make_policy([row]), parse_authority("a.test:443"), Phase.RUNTIME)


class Anew(World):
    """A world that was asked one thing, and answered it."""

    def __init__(self) -> None:
        super().__init__()
        self.ask()
        self.answer()
        self.said: Decision | None = decision_of()
        self.asked = 0

    def ask(self, *, ends: bool = True) -> int:
        """Begin a stream; return the client's number."""
        number = self.client.get_next_available_stream_id()
        self.client.send_headers(number, GET, end_stream=ends)
        self.turn()
        return number

    def answer(self) -> None:
        """Answer what the destination saw last."""
        seen = [event for event in self.seen if isinstance(event, RequestReceived)][-1]
        self.site.send_headers(seen.stream_id, ANSWER, end_stream=True)
        self.turn()

    def judge(self) -> Decision | None:
        """Say what the policy says now."""
        self.asked += 1
        return self.said

    def let_go(self) -> bool:
        """Let the destination go; the next one that is heard is another."""
        last = self.middle.let_go(self.judge)
        if last is None:
            return False
        assert any(isinstance(event, ConnectionTerminated) for event in self.site.receive_data(last))
        assert not self.middle.reaching
        self.site = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self.site.initiate_connection()
        self.heard.clear()
        self.seen.clear()
        return True

    def turn(self) -> None:
        """Likewise, where there is nobody to hear of the destination."""
        if self.middle.reaching:
            super().turn()
            return
        self.middle.from_client(self.client.data_to_send())
        while self.middle.client_waits:
            self.middle.from_client(b"")
        self.heard += self.client.receive_data(self.middle.take_client())
        if self.middle.reaching and not self.middle.over:
            super().turn()


def test_the_next_stream_begins_anew() -> None:
    """RFC 9113, RFC 7541: its numbers, windows and tables are those of a new connection; the client's go on."""
    world = Anew()
    for number in (3, 5):
        assert world.let_go()
        assert world.middle.take_upstream() == b""
        assert world.ask() == number
        (request,) = [event for event in world.seen if isinstance(event, RequestReceived)]
        assert request.stream_id == 1
        assert dict(request.headers)["x-own"] == "1" * 50
        world.answer()
        (found,) = [event for event in world.heard if isinstance(event, ResponseReceived)]
        assert found.stream_id == number
        assert world.middle.streams == 0
    assert world.asked == 2
    assert [line.written for line in world.lines] == [[(How.INSPECTED, Reason.ALLOWED)]] * 3


def test_what_is_under_way_holds_it() -> None:
    """INS-3: a stream that is open, one that was not looked at yet, a destination or a client that leaves."""
    world = Anew()
    number = world.ask(ends=False)
    assert not world.let_go()
    world.client.end_stream(number)
    world.turn()
    assert not world.let_go()
    world.answer()
    assert world.let_go()
    assert not world.let_go()

    waiting = Anew()
    waiting.client.send_headers(3, GET, end_stream=True)
    waiting.client.send_headers(5, GET, end_stream=True)
    waiting.middle.from_client(waiting.client.data_to_send())
    assert waiting.middle.client_waits
    assert not waiting.let_go()

    leaving = Anew()
    leaving.middle.upstream_ended()
    assert not leaving.let_go()


def test_who_is_known_by_the_connection_holds_it() -> None:
    """RFC 4559: once it was said, by either side, for good."""
    for asked, answered in ((("authorization", "NTLM x"), None), (None, ("www-authenticate", "Negotiate"))):
        world = Anew()
        world.client.send_headers(3, [*GET, asked] if asked else GET, end_stream=True)
        world.turn()
        world.site.send_headers(3, [*ANSWER, answered] if answered else ANSWER, end_stream=True)
        world.turn()
        world.ask()
        world.answer()
        assert world.middle.keeps
        assert not world.let_go()


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (decision_of(Verdict.DENY), Reason.DENY_RULE),
        (decision_of(path="/other"), Reason.METHOD_NOT_ALLOWED),
        (None, None),
    ],
)
def test_the_stream_is_judged_by_what_is_said_now(said: Decision | None, reason: Reason | None) -> None:
    """POL-8: before a byte of it is put into frames; where the client has to begin anew its stream was not taken."""
    world = Anew()
    assert world.let_go()
    world.said = said
    number = world.ask()
    assert not world.middle.reaching
    assert world.middle.take_upstream() == b""
    (line,) = world.lines[1:]
    if reason is None:
        assert world.middle.over
        (reset,) = [event for event in world.heard if isinstance(event, StreamReset)]
        assert (reset.stream_id, reset.error_code) == (number, 7)
        assert line.written == [(How.REFUSED, Reason.UPSTREAM_CLOSED)]
        assert any(isinstance(event, ConnectionTerminated) for event in world.heard)
        return
    assert not world.middle.over
    assert line.written == [(How.REFUSED, reason)]
    assert line.status == reason.status
    world.said = decision_of()
    world.ask()
    world.answer()
    assert world.lines[2].written == [(How.INSPECTED, Reason.ALLOWED)]
    assert world.lines[2].decision is world.said


def test_a_websocket_waits_for_the_setting_of_its_own_connection() -> None:
    """RFC 8441 section 3: with nobody there the client begins anew; before the setting came it is not taken."""
    offer = [(":method", "CONNECT"), (":protocol", "websocket"), *GET[1:4]]

    def offered(world: Anew) -> list[int | None]:
        number = world.client.get_next_available_stream_id()
        world.client.send_headers(number, offer)
        world.middle.from_client(world.client.data_to_send())
        while world.middle.client_waits:
            world.middle.from_client(b"")
        heard = world.client.receive_data(world.middle.take_client())
        return [event.error_code for event in heard if isinstance(event, StreamReset) and event.stream_id == number]

    alone = Anew()
    assert alone.let_go()
    assert offered(alone) == [7]
    assert alone.middle.over
    assert alone.asked == 0

    world = Anew()
    assert world.let_go()
    world.client.send_headers(3, GET, end_stream=True)
    assert offered(world) == [7]
    assert not world.middle.over
    world.site.update_settings({SettingCodes.ENABLE_CONNECT_PROTOCOL: 1})
    world.turn()
    assert offered(world) == []
    world.turn()
    assert [event.stream_id for event in world.seen if isinstance(event, RequestReceived)] == [1, 3]


def test_a_destination_that_is_not_reached_is_told_to_every_stream() -> None:
    """INS-3: with the reason and a clause, under the decision that stands by then; and the client is told to leave."""
    world = Anew()
    assert world.let_go()
    for _ in range(2):
        number = world.client.get_next_available_stream_id()
        world.client.send_headers(number, GET, end_stream=True)
    world.middle.from_client(world.client.data_to_send())
    while world.middle.client_waits:
        world.middle.from_client(b"")
    denied = decision_of(Verdict.DENY)
    world.middle.reached(denied)
    assert [line.decision for line in world.lines[1:]] == [denied] * 2
    world.middle.upstream_ended(Reason.UPSTREAM_REFUSED, "tried 1.2.3.4")
    heard = world.client.receive_data(world.middle.take_client())
    assert [dict(event.headers)[":status"] for event in heard if isinstance(event, ResponseReceived)] == ["502"] * 2
    assert b"tried 1.2.3.4" in b"".join(getattr(event, "data", b"") for event in heard)
    assert world.middle.over
