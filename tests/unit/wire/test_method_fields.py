"""Fields of a body by which frameworks take a POST for another method."""

from __future__ import annotations

import random

import pytest

from tidegate.model.reason import Reason
from tidegate.wire.errors import MethodFieldError
from tidegate.wire.method_fields import method_fields

FORM, JSON, PARTS = b"application/x-www-form-urlencoded", b"application/json", b"multipart/form-data; boundary=x"


def through(kind: bytes, body: bytes, step: int) -> bytes:
    """A whole body in pieces."""
    look = method_fields([(b"Content-Type", kind)] if kind else [])
    assert look is not None
    out = b"".join(look.feed(body[at : at + step]) for at in range(0, len(body), step))
    return out + look.end()


def part(name: bytes, value: bytes = b"x") -> bytes:
    """A form of one part."""
    return b'--x\r\nContent-Disposition: form-data; name="%b"\r\n\r\n%b\r\n--x--\r\n' % (name, value)


ASKS = [
    (FORM, b"_method=DELETE"),
    (b"", b"a=1&_method=put"),
    (FORM, b"a=" + bytes(5000) + b"&%5fMet%68od=x"),
    (FORM, b"a;.method=x"),
    (FORM, b"+++%20_method=x"),
    (FORM, b"a=1&" + b"+" * 2000 + b"_method=x"),
    (FORM, b"[method=x"),
    (FORM, b"X-HTTP-Method-Override=PUT"),
    (FORM, b"x_method.override=PUT"),
    (FORM, b"a=1&method=delete"),
    (FORM, b"%6dethod=p%55t"),
    (b"Application/X-WWW-Form-Urlencoded; charset=UTF-8", b"_method=x"),
    (FORM + b" x", b"_method=x"),
    (b"text/json", b'{"_method": 1}'),
    (JSON, b'{"a": [1], "_method": "delete"}'),
    (b"application/vnd.api+json", b'{"\\u005fm\\u0045thod":"x"}'),
    (PARTS, part(b"_method")),
    (PARTS, part(b"_m\\ethod")),
    (PARTS, part(b" .method")),
    (PARTS, part(b"_method").replace(b"data; ", b"data;\r\n\t")),
    (PARTS, part(b"_method").replace(b'"', b"")),
    (PARTS, part(b"_method").replace(b"name=", b"NAME*=utf-8'en'").replace(b"_m", b"%5Fm")),
    (PARTS, part(b"method", b"delete")),
    (b"multipart/mixed", part(b"x-http-method-override")),
]


@pytest.mark.parametrize("step", [1, 7, 255, 256, 257, 1_000_000])
@pytest.mark.parametrize(("kind", "body"), ASKS)
def test_a_field_that_asks_for_another_method_is_met(kind: bytes, body: bytes, step: int) -> None:
    """INS-6: in each spelling that servers make one of, wherever pieces end; nothing of it has been passed on."""
    look = method_fields([(b"Content-Type", kind)] if kind else [])
    assert look is not None
    passed, caught = b"", None
    for at in range(0, len(body), step):
        try:
            passed += look.feed(body[at : at + step])
        except MethodFieldError as error:
            caught = error
            break
    assert caught is not None
    assert caught.reason is Reason.METHOD_NOT_ALLOWED
    assert "asks for another method" in caught.detail
    assert body.startswith(passed)
    assert b"ethod" not in passed.lower()


PASSES = [
    (FORM, b""),
    (FORM, b"a"),
    (FORM, b"a=_method&b=method%3Ddelete&method=card&payment_method=put&my_method=x&method=delivery&=x&&"),
    (FORM, b"&" * 600 + b"a+b=" + b"+" * 600),
    (JSON, b'{"text": "say \\"_method\\" and _method", "method": "delete", "a_method": 1}'),
    (PARTS, part(b"file", b"the _method of it") + b'; filename="_method"'),
    (PARTS, part(b"method", b"card")),
]


@pytest.mark.parametrize("step", [1, 7, 256, 1_000_000])
@pytest.mark.parametrize(("kind", "body"), PASSES)
def test_what_asks_for_nothing_passes_as_it_is(kind: bytes, body: bytes, step: int) -> None:
    """INS-6: values, longer names, and `method` where it names none."""
    assert through(kind, body, step) == body


def test_whole_or_in_pieces_the_same_is_found() -> None:
    """INS-6: whatever the bytes are."""
    draw = random.Random(5)
    signs = [
        b"_method",
        b"%5f",
        b"&",
        b";",
        b"+",
        b'"',
        b"\\",
        b"=",
        b"name",
        b"method",
        b"delete",
        b"x",
        b"\r\n",
        b" ",
    ]
    for kind in (FORM, JSON, PARTS):
        for _ in range(400):
            body = b"".join(draw.choice(signs) for _ in range(draw.randrange(60)))

            def said(step: int, kind: bytes = kind, body: bytes = body) -> bytes | str:
                try:
                    return through(kind, body, step)
                except MethodFieldError as error:
                    return error.detail

            assert said(1) == said(draw.randrange(2, 50)) == said(10_000)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ([(b"content-type", FORM), (b"content-encoding", b"gzip")], "is compressed"),
        ([(b"content-type", JSON), (b"content_encoding", b"br")], "is compressed"),
        ([(b"content-type", FORM), (b"Content-Type", b"text/plain")], "has two types"),
        ([(b"content-type", b"text/plain, " + FORM)], "has two types"),
        ([(b"content-type", JSON + b"; a=multipart/form-data")], "has two types"),
        ([(b"content-type", FORM + b";charset=ibm037")], "another charset"),
    ],
)
def test_what_readers_could_read_differently_is_refused(fields: list[tuple[bytes, bytes]], says: str) -> None:
    """INS-6: nobody can say what a server makes of it."""
    with pytest.raises(MethodFieldError, match=says):
        method_fields(fields)


def test_other_bodies_are_not_looked_through() -> None:
    """GAT-5: archives, streams of events, gRPC, compressed or not."""
    for kind in (b"application/octet-stream", b"application/grpc", b"application/x-git-upload-pack-request"):
        assert method_fields([(b"content-type", kind), (b"content-encoding", b"gzip")]) is None
    assert method_fields([(b"content-type", FORM), (b"content-encoding", b"identity")]) is not None
