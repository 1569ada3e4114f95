"""What flows back to a task has placeholders in the place of values."""

from __future__ import annotations

import base64
import html
import json
import random
import urllib.parse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.inspect.placeholder import make_placeholder
from tidegate.inspect.scrub import Scrubber

VALUE = b'sk-ant-api03-a+b/c="d&e<f>g\\h%i~0123456789'
STANDS = make_placeholder(VALUE, random.Random(3).randrange)
SCRUBBER = Scrubber([(VALUE, STANDS)])


def in_pieces(scrubber: Scrubber, data: bytes, sizes: list[int]) -> bytes:
    """Feed the data in pieces."""
    stream, out, at = scrubber.stream(), b"", 0
    for size in sizes:
        out += stream.feed(data[at : at + size])
        at += size
    return out + stream.feed(data[at:]) + stream.end()


def percent_small(value: bytes) -> bytes:
    """Percent-encoding with small letters, which some servers write."""
    return b"".join(bytes((c,)) if chr(c).isalnum() or c in b"-._~" else b"%%%02x" % c for c in value)


FORMS = {
    "as it is": (VALUE, STANDS),
    "percent-encoded": (urllib.parse.quote(VALUE, safe="").encode(), urllib.parse.quote(STANDS, safe="").encode()),
    "percent-encoded, small": (percent_small(VALUE), percent_small(STANDS)),
    "in JSON": (json.dumps(VALUE.decode()).encode(), json.dumps(STANDS.decode()).encode()),
    "in JSON with slashes": (
        json.dumps(VALUE.decode()).replace("/", "\\/").encode(),
        json.dumps(STANDS.decode()).replace("/", "\\/").encode(),
    ),
    "hex": (VALUE.hex().encode(), STANDS.hex().encode()),
    "UTF-16, little": (VALUE.decode().encode("utf-16-le"), STANDS.decode().encode("utf-16-le")),
    "UTF-16, big": (VALUE.decode().encode("utf-16-be"), STANDS.decode().encode("utf-16-be")),
    "HEX": (VALUE.hex().upper().encode(), STANDS.hex().upper().encode()),
}


def with_(value: bytes, escapes: dict[str, str]) -> bytes:
    """As a writer with these escapes says it."""
    return "".join(escapes.get(sign, sign) for sign in value.decode()).encode()


def codes(signs: str, template: str) -> dict[str, str]:
    """Escapes by number."""
    return {sign: template.format(ord(sign)) for sign in signs}


BACK = {'"': '\\"', "\\": "\\\\"}
HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
WRITERS = {
    "Go, Rails": BACK | codes("<>&", "\\u{:04x}"),
    "Jinja": BACK | codes("<>&'", "\\u{:04x}"),
    "Gson": BACK | codes("<>&'=", "\\u{:04x}"),
    "System.Text.Json": BACK | codes("<>&'\"+`", "\\u{:04X}"),
    "PHP": BACK | {"/": "\\/"} | codes("<>&'\"", "\\u{:04X}"),
    "encodeURIComponent": codes('+/="&<>\\%', "%{:02X}"),
    "encodeURI": codes('"<>\\%', "%{:02X}"),
    "Python's quote": codes('+="&<>\\%', "%{:02X}"),
    "a form": codes('+/="&<>\\%~', "%{:02X}"),
    "grpc-message": codes("%", "%{:02X}"),
    "Python's HTML": HTML | {'"': "&quot;", "'": "&#x27;"},
    "Go's HTML": HTML | {'"': "&#34;", "'": "&#39;"},
    "Go's templates": HTML | {'"': "&#34;", "'": "&#39;", "+": "&#43;"},
}
WRITERS_TWICE = ("Go, Rails", "Gson", "System.Text.Json", "PHP", "encodeURIComponent", "a form", "Python's HTML")
FORMS |= {writer: (with_(VALUE, escapes), with_(STANDS, escapes)) for writer, escapes in WRITERS.items()}

FORMS |= {
    f"{writer}, twice": tuple(with_(with_(one, WRITERS[writer]), WRITERS[writer]) for one in (VALUE, STANDS))
    for writer in WRITERS_TWICE
}
FORMS |= {
    "JSON in JSON": tuple(json.dumps(json.dumps(one.decode())).encode() for one in (VALUE, STANDS)),
    "JSON in a URL": tuple(urllib.parse.quote(json.dumps(one.decode())).encode() for one in (VALUE, STANDS)),
    "JSON in a page": tuple(html.escape(json.dumps(one.decode())).encode() for one in (VALUE, STANDS)),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_found_wherever_it_is_cut(form: str) -> None:
    """INS-5, B118: at each place where a chunk may end; what is around it stays."""
    value, stands = FORMS[form]
    data = b"before " + value + b" after"
    for cut in range(len(data) + 1):
        assert in_pieces(SCRUBBER, data, [cut]) == b"before " + stands + b" after"
    assert in_pieces(SCRUBBER, data, [1] * len(data)) == b"before " + stands + b" after"


@pytest.mark.parametrize("before", [b"", b"u", b"us", b"user:", b"user:x"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_base64_is_found_at_each_of_its_three_places(before: bytes, encode: object) -> None:
    """INS-5, B118: as Basic authorization is echoed; of the value at most its edges can be read, six bits each."""
    encoded = encode(before + VALUE + b":rest")  # type: ignore[operator]
    decode = base64.urlsafe_b64decode if encode is base64.urlsafe_b64encode else base64.b64decode
    got = decode(in_pieces(SCRUBBER, encoded, [7, 3, 20]))
    assert got[: len(before)] == before
    inside = got[len(before) : len(before) + len(VALUE)]
    assert inside[1:-1] == STANDS[1:-1]
    assert got[len(before) + len(VALUE) :] == b":rest"


KEY = b"ghp_~~~Real???Real>>>Real0001"  # whose base64 has both signs of its alphabet
ESCAPES = {"PHP": {"/": "\\/"}, ".NET": {"+": "\\u002B"}, "a form": {"/": "%2F", "+": "%2B"}, "page": {"+": "&#43;"}}


@pytest.mark.parametrize("before", [b"", b"u", b"us"])
@pytest.mark.parametrize("writer", ESCAPES)
def test_base64_is_found_with_escapes_in_it(before: bytes, writer: str) -> None:
    """INS-5, B118: as Basic authorization is echoed in JSON, a form or a page; it is as long as before."""
    stands = make_placeholder(KEY, random.Random(3).randrange)
    said = with_(base64.b64encode(before + KEY), ESCAPES[writer])
    assert said != base64.b64encode(before + KEY)
    got = in_pieces(Scrubber([(KEY, stands)]), b'{"a":"' + said + b'"}', [7, 3, 20])
    assert len(got) == len(said) + 8
    inner = base64.b64encode(before + KEY)[4:-4]
    assert with_(inner, ESCAPES[writer]) not in got
    assert got.startswith(b'{"a":"')


@given(st.lists(st.sampled_from([VALUE, VALUE[:9], VALUE[9:], b"x", b"sk-", b"\n\n", STANDS]), max_size=12), st.data())
def test_whole_or_in_pieces_the_same_comes_out(parts: list[bytes], data: st.DataObject) -> None:
    """The invariant of the module."""
    whole = b"".join(parts)
    sizes = data.draw(st.lists(st.integers(0, 30), max_size=12))
    expected = whole.replace(VALUE, STANDS)
    assert in_pieces(SCRUBBER, whole, []) == expected
    assert in_pieces(SCRUBBER, whole, sizes) == expected


def test_nothing_is_held_back_that_cannot_begin_a_value() -> None:
    """B119: an event of a stream goes on at once, whole; only a beginning waits, and no longer than it is one."""
    stream = SCRUBBER.stream()
    assert stream.feed(b"data: {}\n\n") == b"data: {}\n\n"
    assert stream.feed(b"data: sk-a") == b"data: "
    assert stream.feed(b"pple\n\n") == b"sk-apple\n\n"
    assert stream.feed(VALUE[:-1]) == b""
    assert stream.end() == VALUE[:-1]


def test_the_longer_of_two_values_is_not_left_in_part() -> None:
    """One secret that begins as another: the rest of the longer one is not shown."""
    short, long = b"tok-0123456789", b"tok-0123456789abcdef"
    both = Scrubber([(short, b"S" * len(short)), (long, b"L" * len(long))])
    for cut in range(len(long) + 1):
        assert in_pieces(both, long + b".", [cut]) == b"L" * len(long) + b"."
        assert in_pieces(both, short + b".", [cut]) == b"S" * len(short) + b"."
    assert both.all(short + long) == b"S" * len(short) + b"L" * len(long)
    assert in_pieces(both, short, [3]) == b"S" * len(short)


def test_one_of_another_outline_is_refused() -> None:
    """Lengths that were announced have to stay true."""
    with pytest.raises(ValueError, match="outline"):
        Scrubber([(b"abcdefgh", b"abcdefg")])


def test_nothing_to_look_for_changes_nothing() -> None:
    """The neighbour: a host without secrets."""
    assert in_pieces(Scrubber([]), b"sk-anything", [2]) == b"sk-anything"
