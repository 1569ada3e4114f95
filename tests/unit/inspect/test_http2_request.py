"""What a stream may ask."""

from __future__ import annotations

import pytest

from tidegate.inspect.http2_request import checked, judged, method_of, misframed
from tidegate.model.destination import parse_authority
from tidegate.model.reason import Reason
from tidegate.model.rule import REGISTRY, Layer, Origin, RuleLimits, only
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.decide import decide
from tidegate.policy.policy import make_policy
from tidegate.policy.rows import rule_row

LIMITS = RuleLimits(requests=only(methods=("GET",), paths=("/x/**",)))
ROW = rule_row("a.test", Verdict.ALLOW, Phase.RUNTIME, "p", "p:1:1", Origin.WRITTEN, Layer.COMMAND_LINE, LIMITS)
DECISION = decide(make_policy([ROW]), parse_authority("a.test:443"), Phase.RUNTIME)
GET = {b":method": b"GET", b":scheme": b"https", b":authority": b"a.test", b":path": b"/x/y"}


@pytest.mark.parametrize(
    ("change", "more", "reason"),
    [
        ({}, [], None),
        ({b":path": b"/x/y z"}, [], Reason.BAD_REQUEST),
        ({b":path": b"/x/y HTTP/1.1"}, [], Reason.BAD_REQUEST),
        ({b":method": b"GET /x"}, [], Reason.BAD_REQUEST),
        ({b":path": b"/y"}, [], Reason.METHOD_NOT_ALLOWED),
        ({b":path": b"/x/../y"}, [], Reason.METHOD_NOT_ALLOWED),
        ({b":method": b"PUT"}, [], Reason.METHOD_NOT_ALLOWED),
        ({}, [(b"x-http-method-override", b"DELETE")], Reason.METHOD_NOT_ALLOWED),
        ({}, [(b"x_http_method_override", b"DELETE")], Reason.METHOD_NOT_ALLOWED),
        ({}, [(b"x-original-url", b"/evil")], Reason.METHOD_NOT_ALLOWED),
        ({b":authority": b"b.test"}, [], Reason.MISDIRECTED),
        ({}, [(b"host", b"b.test")], Reason.MISDIRECTED),
        ({}, [(b"host", b"a.test")], None),
        ({b":scheme": b"http"}, [], Reason.BAD_REQUEST),
        ({b":method": b"CONNECT"}, [], Reason.BAD_METHOD),
        ({b":method": b"CONNECT", b":protocol": b"websocket"}, [], None),
        ({b":method": b"CONNECT", b":protocol": b"connect-udp"}, [], Reason.BAD_METHOD),
    ],
)
def test_requests(change: dict[bytes, bytes], more: list[tuple[bytes, bytes]], reason: Reason | None) -> None:
    """INS-4, INS-6: each with its neighbour that passes."""
    pseudo = GET | change
    headers = [*pseudo.items(), *more]
    assert judged(DECISION, pseudo, headers, method_of(pseudo), ends=True)[0] is reason


def test_a_websocket_over_http2_is_nothing_that_reads_of_a_registry() -> None:
    """INS-7: RFC 8441's CONNECT is judged as the offer that it is; a GET passes, with no body behind it."""
    limits = RuleLimits(requests=only(methods=("GET",), kind=REGISTRY))
    row = rule_row("a.test", Verdict.ALLOW, Phase.RUNTIME, "p", "p:1:1", Origin.PRESET, Layer.BUILTIN, limits)
    decision = decide(make_policy([row]), parse_authority("a.test:443"), Phase.RUNTIME)
    socket = GET | {b":method": b"CONNECT", b":protocol": b"websocket"}
    said = [
        judged(decision, one, list(one.items()), method_of(one), ends=ends)[0]
        for one, ends in ((GET, True), (socket, False), (GET, False))
    ]
    assert said == [None, Reason.REGISTRY_READ_ONLY, Reason.REGISTRY_READ_ONLY]


@pytest.mark.parametrize(
    ("field", "good"),
    [
        ((b"x", b"y"), True),
        ((b"x", b"a b\tc"), True),
        ((b"x", b"\xe4"), True),
        ((b"X", b"y"), False),
        ((b"", b"y"), False),
        ((b":", b"y"), False),
        ((b"x:", b"y"), False),
        ((b"x", b"a\r\nb"), False),
        ((b"x", b"a\0"), False),
        ((b"x", b" a"), False),
    ],
)
def test_fields(field: tuple[bytes, bytes], good: bool) -> None:
    """INS-3: what is a field to HTTP/1 too, and nothing else."""
    assert (checked([field]) is not None) is good


@pytest.mark.parametrize(
    ("lengths", "ends", "bad"),
    [
        ([], True, False),
        ([b"0"], True, False),
        ([b"5"], False, False),
        ([b"5"], True, True),
        ([b"5", b"5"], False, True),
        ([b"+5"], False, True),
        ([b""], True, True),
    ],
)
def test_a_length_is_said_once_and_true(lengths: list[bytes], *, ends: bool, bad: bool) -> None:
    """RFC 9113 section 8.1.1, B34: whoever speaks HTTP/1 behind the destination would wait for a body."""
    assert misframed([(b"content-length", one) for one in lengths], ends=ends) is bad


@pytest.mark.parametrize("name", [b"content_length", b"transfer_encoding"])
def test_no_framing_under_another_name(name: bytes) -> None:
    """B34, RFC 3875 section 4.1.18: '-' and '_' are one to who hands fields on as variables."""
    assert misframed([(name, b"5")], ends=False)
    assert not misframed([(b"x_" + name, b"5")], ends=False)
