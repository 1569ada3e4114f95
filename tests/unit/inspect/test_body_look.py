"""Bodies are held within bounds, and what is sent is what was read."""

from __future__ import annotations

import tracemalloc

import pytest

from tests.coded import coded
from tidegate.inspect.body_look import MOST, ROOM, BodyGuard, BodyLook
from tidegate.inspect.secrets import Place, Secret, Where
from tidegate.model.reason import Reason

VALUE, STANDS = b"ghp_RealRealRealReal0001", b"ghp_FakeFakeFakeFake0002"
PLACE = ("a.test", 443)
KEY = Secret("KEY", (PLACE,), Place(Where.BODY, b"key"), VALUE, STANDS)
JSON = (b"Content-Type", b"application/json")
BODY = b'{"key": "' + STANDS + b'"}'


def look(guard: BodyGuard, *fields: tuple[bytes, bytes], empty: bool = False) -> BodyLook:
    """Begin one."""
    return guard.look(PLACE, "POST", b"/token?x", fields, socket=False, empty=empty)


def test_it_covers_its_hosts() -> None:
    """INS-5: no other, and no other port."""
    guard = BodyGuard({PLACE: [KEY]}, print)
    assert [guard.covers(*one) for one in (PLACE, ("a.test", 8443), ("b.test", 443))] == [True, False, False]


@pytest.mark.parametrize("coding", [(), ("gzip",)])
def test_what_is_sent_is_what_was_read(coding: tuple[str, ...]) -> None:
    """INS-5: plain, whatever it came in, in pieces; the room is given back."""
    used: list[tuple[str, str, int]] = []
    guard = BodyGuard({PLACE: [KEY]}, lambda *use: used.append(use))
    one = look(guard, JSON, *((b"content-encoding", kind.encode()) for kind in coding))
    data = coded(BODY, *coding)
    for at in range(len(data)):
        one.take(data[at : at + 1])
    assert (one.body, one.done(), one.why, one.path) == (True, BODY.replace(STANDS, VALUE), "", "/token")
    assert used == [("KEY", *PLACE)]
    one.let_go()
    one.let_go()
    assert guard.left == ROOM


@pytest.mark.parametrize(
    ("fields", "empty"), [((), False), (((b"content-type", b"application/octet-stream"),), False), ((JSON,), True)]
)
def test_what_has_no_fields_is_not_held(fields: tuple[tuple[bytes, bytes], ...], *, empty: bool) -> None:
    """The neighbour: it passes as it comes."""
    one = look(BodyGuard({PLACE: [KEY]}, print), *fields, empty=empty)
    assert (one.body, one.why) == (False, "")


@pytest.mark.parametrize(
    ("fields", "body", "says"),
    [
        ((JSON, (b"content-type", b"text/plain")), b"", "says twice what it is"),
        ((JSON, (b"Content-Encoding", b"exi")), b"", "compressed in a way that cannot be read"),
        ((JSON, (b"Content-Encoding", b"gzip"), (b"Content-Encoding", b"br")), b"", "compressed in a way"),
        ((JSON, (b"Content-Encoding", b"gzip")), b"no gzip", "the secret KEY belongs in body-field key, and"),
        ((JSON,), b'{"x": "' + STANDS + b'"}', "and was sent in the field 'x'"),
        ((JSON,), bytes(MOST + 1), "a body of more than 4 MiB is not read"),
        ((JSON, (b"content-encoding", b"gzip")), coded(b" " * 1000 * 1000 + bytes(9 << 20), "gzip"), "belongs in"),
    ],
    ids=range(7),
)
def test_what_cannot_be_read_is_refused(fields: tuple[tuple[bytes, bytes], ...], body: bytes, says: str) -> None:
    """INS-5: with the name of the secret, and nothing is held for it."""
    guard = BodyGuard({PLACE: [KEY]}, print)
    one = look(guard, *fields)
    one.take(body)
    one.done()
    assert says in one.why
    assert one.reason is Reason.SECRET_MISDIRECTED
    assert guard.left == ROOM
    assert VALUE not in one.answer(one.why)


def test_all_that_wait_are_bounded() -> None:
    """GAT-5: the second of two that together are too much; when the first is gone there is room."""
    guard = BodyGuard({PLACE: [KEY]}, print, room=100)
    first, second, third = look(guard, JSON), look(guard, JSON), look(guard, JSON)
    first.take(bytes(80))
    second.take(bytes(80))
    assert (second.reason, "too many bodies wait" in second.why) == (Reason.OUT_OF_RESOURCES, True)
    first.let_go()
    third.take(bytes(80))
    assert third.why == ""


def test_a_body_in_the_smallest_of_pieces_takes_no_more_room_than_it_is_said_to() -> None:
    """INS-5: what is held is bounded in memory, also where each chunk of it has two bytes."""
    one = look(BodyGuard({PLACE: [KEY]}, print), JSON)
    piece = memoryview(b"ab")
    tracemalloc.start()
    try:
        for _ in range(200_000):
            one.take(piece)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * 400_000
    one.let_go()
