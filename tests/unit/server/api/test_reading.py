"""Bodies and queries: strict, bounded, and wrong ones named with their place."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Annotated

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.server.api.errors import ApiError
from tidegate.server.api.reading import content_type, decode, parse_query, read_body

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Thing(msgspec.Struct, forbid_unknown_fields=True):
    """A body."""

    colour: str
    sizes: list[Annotated[int, msgspec.Meta(ge=1)]] = []
    deep: bool | None = None


class Query(msgspec.Struct, forbid_unknown_fields=True):
    """A query."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=9)] = 5
    living: bool | None = None
    folder: str = ""


@pytest.mark.parametrize(
    ("body", "what", "fix"),
    [
        (b'{"colour": "a", "sices": []}', "'sices' at $", "did you mean 'sizes'?"),
        (b'{"colour": "a", "zzz": 1}', "'zzz' at $", "known here: colour, sizes, deep"),
        (b'{"colour": 1}', "at $.colour: Expected str, got int", ""),
        (b'{"colour": "a", "sizes": [1, 0]}', "at $.sizes[1]: Expected int >= 1", ""),
        (b"{}", "at $: Object missing required field colour", ""),
        (b"[]", "at $: Expected object, got array", ""),
        (b"null", "at $: Expected object, got null", ""),
        (b'{"colour": "a", "colour": "b"}', "the name 'colour' twice", ""),
        (b'{"colour": "a", "deep": {"x": 1, "x": 2}}', "the name 'x' twice", ""),
        (b'{"colour": "a"', "is not JSON", ""),
        (b'{"colour": "a"} x', "is not JSON", ""),
        (b'{"colour": NaN}', "is not JSON", ""),
        (b'{"colour": "\xff"}', "is not JSON", ""),
        (b'{"colour": "\\ud800"}', "is not JSON", ""),
        (b"[" * 100000, "is not JSON", ""),
        (b"", "is not JSON", ""),
    ],
)
def test_bad_bodies_are_named_with_their_place(body: bytes, what: str, fix: str) -> None:
    """SRV-1: each is 400 and says what is wrong, where, and which name is the nearest."""
    with pytest.raises(ApiError) as caught:
        decode(body, Thing)
    assert caught.value.status == 400
    assert what in caught.value.what
    assert caught.value.fix == fix


def test_good_bodies_are_read() -> None:
    """The neighbours: with and without what may be left out, in any order."""
    assert decode(b'{"sizes": [1, 2], "colour": "\xc3\xa4"}', Thing) == Thing("ä", [1, 2])
    assert decode(b' {"colour": ""}\n', Thing) == Thing("")


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_bytes_are_a_value_or_one_error(body: bytes) -> None:
    """SRV-1: whatever comes is a value of the type, or 400."""
    try:
        found = decode(body, Thing)
    except ApiError:
        with pytest.raises(ApiError) as caught:
            decode(body, Thing)
        assert caught.value.status == 400
    else:
        assert isinstance(json.loads(body), dict)
        assert isinstance(found.colour, str)


@pytest.mark.parametrize(
    ("raw", "what"),
    [
        (b"limit=0", "at $.limit"),
        (b"limit=10", "at $.limit"),
        (b"limit=x", "at $.limit"),
        (b"limit=", "at $.limit"),
        (b"limit", "NAME=VALUE"),
        (b"limit=1&&living=true", "NAME=VALUE"),
        (b"living=null", "at $.living"),
        (b"living=NULL", "at $.living"),
        (b"living=", "at $.living"),
        (b"limit=1&limit=1", "'limit' twice"),
        (b"Limit=1", "'Limit' at $"),
        (b"folder=%ff", "percent-encoded UTF-8"),
        (b"folder=\xff", "percent-encoded UTF-8"),
        (b"folder=" + b"a" * 5000, "longer than 4096"),
    ],
)
def test_bad_queries_are_named(raw: bytes, what: str) -> None:
    """SRV-1: a parameter that is unknown, twice, or of the wrong kind is 400."""
    with pytest.raises(ApiError, match=r".") as caught:
        parse_query(raw, Query)
    assert caught.value.status == 400
    assert what in caught.value.what


def test_good_queries_are_read() -> None:
    """The neighbours: nothing at all, numbers, booleans, percent-encoding."""
    assert parse_query(b"", Query) == Query()
    assert parse_query(b"limit=9&living=true&folder=%2Fa+b%C3%A4", Query) == Query(9, living=True, folder="/a bä")
    assert parse_query(b"folder=null", Query) == Query(folder="null")


@pytest.mark.parametrize(
    ("value", "good"),
    [
        ("application/json", True),
        ("Application/JSON ; charset=UTF-8", True),
        ('application/json;charset="utf-8"', True),
        ("application/json; charset=latin1", False),
        ("application/json; boundary=x", False),
        ("application/jsonx", False),
        ("text/json", False),
        ("text/plain", False),
        ("", False),
    ],
)
def test_only_json_is_json(value: str, *, good: bool) -> None:
    """SRV-1: any other type is 415; a form or plain text, which a page can send unasked, is one."""
    if good:
        content_type(value)
        return
    with pytest.raises(ApiError) as caught:
        content_type(value)
    assert caught.value.status == 415


def _read(headers: dict[str, str], chunks: list[bytes], limit: int) -> bytes:
    async def stream() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    return asyncio.run(read_body({"content-type": "application/json"} | headers, stream(), limit))


def test_a_body_is_bounded_before_it_is_kept() -> None:
    """SRV-1: exactly the limit passes, one byte more is 413, and one that says so is not read at all."""
    assert _read({}, [b"ab", b"cd"], 4) == b"abcd"
    assert _read({"content-length": "4"}, [b"abcd"], 4) == b"abcd"
    for headers, chunks in [({}, [b"ab", b"cde"]), ({"content-length": "5"}, [])]:
        with pytest.raises(ApiError) as caught:
            _read(headers, chunks, 4)
        assert caught.value.status == 413


def test_a_compressed_body_is_refused() -> None:
    """SRV-1: a content coding is 415: nothing is unpacked that could grow."""
    with pytest.raises(ApiError) as caught:
        _read({"content-encoding": "gzip"}, [b"x"], 4)
    assert caught.value.status == 415
