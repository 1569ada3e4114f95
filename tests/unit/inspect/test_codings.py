"""Codings are taken off piece by piece, promptly, whole, and not beyond measure."""

from __future__ import annotations

import random
import tracemalloc
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.coded import Coder, coded
from tidegate.inspect import codings
from tidegate.inspect.codings import (
    FREE,
    MEMBER_BYTES,
    MEMBERS,
    MOST_CODINGS,
    PIECE,
    RATIO,
    Decoding,
    Windows,
    acceptable,
)
from tidegate.wire.errors import WireError

KINDS = ("gzip", "deflate", "raw-deflate", "br", "zstd")
TEXT = b"".join(b"line %d of it\n" % number for number in range(20_000)) + random.Random(1).randbytes(100_000)


def names(*kinds: str) -> list[bytes]:
    """Codings as a field names them."""
    return [kind.removeprefix("raw-").encode() for kind in kinds]


def taken(decoding: Decoding, data: bytes, step: int) -> bytes:
    """Put bytes in and take them out, as the gate does."""
    out = []
    for at in range(0, len(data), step):
        decoding.put(data[at : at + step])
        while decoding.pending:
            out.append(decoding.take())
    return b"".join(out)


@pytest.mark.parametrize("step", [1, 777, 1 << 20])
@pytest.mark.parametrize("kind", KINDS)
def test_each_coding_is_taken_off_however_it_comes(kind: str, step: int) -> None:
    """INS-5, B118: whole, in pieces or byte by byte the same."""
    text = TEXT if step > 1 else TEXT[:5000] + TEXT[-3000:]
    decoding = Decoding(names(kind))
    assert taken(decoding, coded(text, kind), step) == text
    decoding.end()


@pytest.mark.parametrize("kind", KINDS)
def test_more_may_come_while_some_is_pending(kind: str) -> None:
    """RFC 9113 section 5.2: a client of HTTP/2 whose window is shut takes nothing out for a while."""
    decoding, packed, out = Decoding(names(kind)), coded(TEXT * 3, kind), []
    for at in range(0, len(packed), 1000):
        decoding.put(packed[at : at + 1000])
        if at % 3000 == 0 and decoding.pending:
            out.append(decoding.take())
    while decoding.pending:
        out.append(decoding.take())
    decoding.end()
    assert b"".join(out) == TEXT * 3


@pytest.mark.parametrize("row", [("gzip", "br"), ("deflate", "zstd", "gzip"), ("gzip", "gzip")])
def test_several_in_a_row(row: tuple[str, ...]) -> None:
    """INS-5, RFC 9110 section 8.4: the last that was put on is taken off first."""
    decoding = Decoding(names(*row))
    assert taken(decoding, coded(TEXT, *row), 999) == TEXT
    decoding.end()


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_flushed_comes_out_at_once(kind: str) -> None:
    """B119, B55: an event of a stream does not wait for the next one."""
    coder, decoding = Coder(kind), Decoding(names(kind))
    for number in range(5):
        event = b"data: %d\n\n" % number
        assert taken(decoding, coder.flushed(event), 1 << 20) == event
    assert taken(decoding, coder.end(), 1 << 20) == b""
    decoding.end()


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_members_behind_one_another_are_one_body(kind: str) -> None:
    """RFC 1952 section 2.2, RFC 8878 section 3.1."""
    data = coded(b"one", kind) + coded(b"", kind) + coded(b"two", kind)
    for step in (1, 1000):
        decoding = Decoding(names(kind))
        assert taken(decoding, data, step) == b"onetwo"
        decoding.end()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_such_coding_or_cut_short_is_an_error(kind: str) -> None:
    """INS-5: nothing of it is taken for the whole; the neighbour, an empty body, is whole."""
    data = coded(TEXT, kind)
    decoding = Decoding(names(kind))
    taken(decoding, data[:-1], 1 << 20)
    with pytest.raises(WireError, match="ends in the middle"):
        decoding.end()
    for broken in (data + b"junk", b"\xff\xfe plain text that is none of it", data[:100] + data[900:]):
        with pytest.raises(WireError, match=r"cannot be decompressed|window is larger"):
            broken_end(Decoding(names(kind)), broken)
    empty = Decoding(names(kind))
    empty.put(b"")
    empty.end()


def broken_end(decoding: Decoding, data: bytes) -> None:
    """To the end of it."""
    taken(decoding, data, 1 << 20)
    decoding.end()


@pytest.mark.parametrize("row", [(kind,) for kind in KINDS] + [("gzip", "gzip"), ("br", "zstd")])
def test_a_bomb_ends_before_it_fills_anything(row: tuple[str, ...]) -> None:
    """Issue 6: 24 MiB of zeros; what was taken out is bounded, and so is memory all the while."""
    bomb = coded(bytes(24 << 20), *row)
    sizes: list[int] = []
    tracemalloc.start()
    try:
        with pytest.raises(WireError, match="beyond measure"):
            measured(Decoding(names(*row)), bomb, sizes)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert max(sizes) <= 4 * PIECE
    assert sum(sizes) <= FREE + RATIO * len(bomb)


def measured(decoding: Decoding, data: bytes, sizes: list[int]) -> None:
    """Take everything out, and only note how much it is."""
    decoding.put(data)
    while decoding.pending:
        sizes.append(len(decoding.take()))


def test_what_shrinks_well_is_no_bomb() -> None:
    """The neighbour: a log of 3 MiB that shrinks to a tenth or less."""
    line = b"2026-11-30T10:00:00Z INFO request served path=/index.html status=200 bytes=%d\n"
    log = b"".join(line % number for number in range(40_000))
    for kind in ("gzip", "br", "zstd"):
        decoding = Decoding(names(kind))
        assert taken(decoding, coded(log, kind), 1 << 16) == log


@pytest.mark.parametrize("row", [[b"compress"], [b"gzip", b"dcb"], [b"exi"], [b"gzip"] * (MOST_CODINGS + 1)])
def test_an_unknown_coding_cannot_be_read(row: list[bytes]) -> None:
    """INS-5: nor too many of the known ones."""
    with pytest.raises(WireError, match="content coding"):
        Decoding(row)


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        ([b"gzip, deflate, br, zstd"], b"gzip, deflate, br, zstd"),
        ([b"GZIP;q=0.5", b"dcz, *;q=0.1, br;q=0"], b"gzip;q=0.5, br;q=0"),
        ([b"*"], b"identity"),
        ([b"identity;q=0"], b"identity"),
        ([], b"identity"),
        ([b"compress, sdch"], b"identity"),
    ],
)
def test_only_what_can_be_taken_off_is_asked_for(asked: list[bytes], sent: bytes) -> None:
    """INS-5, RFC 9110 section 12.5.3: '*' would be anything."""
    assert acceptable(asked) == sent


def test_without_the_packages_there_are_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """INS-5: what is not installed is not asked for, and refused; nor is a Brotli whose output has no bound."""

    def absent(name: str) -> object:
        if name != "brotli":
            raise ImportError(name)
        return type("Old", (), {"Decompressor": object})

    monkeypatch.setattr(codings, "import_module", absent)
    left = codings._found()[0]
    assert sorted(left) == [b"deflate", b"gzip", b"x-gzip"]
    monkeypatch.setattr(codings, "CODINGS", left)
    assert acceptable([b"gzip, br, zstd"]) == b"gzip"
    with pytest.raises(WireError, match="content coding 'br'"):
        Decoding([b"br"])


@settings(max_examples=60, deadline=None)
@given(
    st.binary(max_size=3000), st.sampled_from(KINDS), st.integers(1, 400), st.binary(max_size=20), st.integers(0, 99)
)
def test_whatever_comes_is_a_value_or_an_error(data: bytes, kind: str, step: int, noise: bytes, at: int) -> None:
    """The invariant: nothing but WireError is raised, whatever a server sends."""
    packed = coded(data, kind)
    for body in (packed, packed[:at] + noise + packed[at:], noise):
        decoding = Decoding(names(kind))
        try:
            out = taken(decoding, body, step)
            decoding.end()
        except WireError:
            assert body is not packed
        else:
            assert body is not packed or out == data


EMPTY = {"gzip": coded(b"", "gzip"), "zstd": coded(b"", "zstd")}


@pytest.mark.parametrize("kind", EMPTY)
def test_members_are_bounded_by_what_came(kind: str) -> None:
    """INS-5, B118: thousands of empty ones cost seconds in which nobody is served, and say nothing."""
    empty = EMPTY[kind]
    with pytest.raises(WireError, match="more members"):
        taken(Decoding(names(kind)), empty * (3 * MEMBERS), 1 << 16)
    assert taken(Decoding(names(kind)), (empty + coded(b"said", kind)) * (MEMBERS // 2), 1 << 16) == b"said" * (
        MEMBERS // 2
    )
    row = coded(random.Random(2).randbytes(3 * MEMBER_BYTES), kind)  # of ordinary ones there may be any number
    assert len(taken(Decoding(names(kind)), row * (4 * MEMBERS), 1 << 16)) == 4 * MEMBERS * 3 * MEMBER_BYTES
    with pytest.raises(WireError, match="more members"):
        taken(Decoding(names(kind), 16), row * 17, 1 << 16)
    assert len(taken(Decoding(names(kind), 16), row * 16, 1 << 16)) == 16 * 3 * MEMBER_BYTES


def test_one_step_is_a_step_where_much_comes_to_nothing() -> None:
    """INS-5, B119: a few KiB that grow to megabytes of empty blocks in another coding hold nobody up meanwhile."""
    blocks = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    head = blocks.compress(b"") + blocks.flush(zlib.Z_SYNC_FLUSH)
    packed = coded(head + b"\0\0\0\xff\xff" * 100_000 + blocks.compress(b"said") + blocks.flush(), "gzip")
    decoding, sizes = Decoding(names("gzip", "gzip")), []
    measured(decoding, packed, sizes)
    decoding.end()
    assert sum(sizes) == 4
    assert len(sizes) > 500_000 // PIECE


def test_what_is_no_name_of_a_coding_is_not_repeated() -> None:
    """INS-5: a server may put a value anywhere; errors never have one. The names that are known help."""
    with pytest.raises(WireError) as met:
        Decoding([b"ghp_0123456789abcdef"])
    assert "ghp_" not in met.value.detail
    with pytest.raises(WireError, match="'compress'"):
        Decoding([b"compress"])


@pytest.mark.parametrize(("kind", "window"), [("br", 1 << 22), ("zstd", 1 << 23), ("gzip", 0)])
def test_windows_have_one_room(kind: str, window: int) -> None:
    """INS-5, GAT-5: fifty bytes fill a window of 16 MiB; what is open at once is bounded, and given back."""
    windows, packed = Windows(3 << 23), coded(TEXT, kind)
    opened = []
    for _ in range((3 << 23) // window if window else 20):
        opened.append(Decoding(names(kind), windows=windows))
        opened[-1].put(packed)
        opened[-1].take()
    assert (windows.left, windows.scarce) == ((0, True) if window else (3 << 23, False))
    if window:
        last = Decoding(names(kind), windows=windows)
        last.put(packed)
        with pytest.raises(WireError, match="too many compressed answers"):
            last.take()
    del opened[:1]
    assert windows.left == (window or 3 << 23)
    again = Decoding(names(kind), windows=windows)
    assert taken(again, packed, 1 << 16) == TEXT


@pytest.mark.parametrize("bits", range(10, 23))
def test_the_window_of_brotli_is_known_by_its_first_byte(bits: int) -> None:
    """RFC 7932 section 9.1: as the library writes it."""
    brotli = pytest.importorskip("brotli")
    for size in (0, 1, 5000):
        windows = Windows()
        decoding = Decoding([b"br"], windows=windows)
        decoding.put(brotli.compress(TEXT[:size], lgwin=bits))
        decoding.take()
        assert windows.room - windows.left == 1 << bits


@pytest.mark.parametrize("bits", [23, 24])
def test_a_large_window_of_brotli_is_refused_at_its_first_byte(bits: int) -> None:
    """GAT-5: to fill it takes tens of milliseconds, in which nobody else is served; its own row of codings too."""
    brotli = pytest.importorskip("brotli")
    told: list[int] = []
    packed = brotli.compress(TEXT, lgwin=bits)
    decoding = Decoding([b"br"], windows=Windows(), wide=lambda: told.append(1))
    decoding.put(packed[:1])
    with pytest.raises(WireError, match="window is larger than 4 MiB"):
        decoding.take()
    assert told == [1]
    with pytest.raises(WireError, match="window is larger than 4 MiB"):
        taken(Decoding([b"br", b"gzip"]), coded(packed, "gzip"), 1 << 16)


def test_what_is_asked_for_without_brotli() -> None:
    """INS-5: of a host that was met with too large a window."""
    assert acceptable([b"br, gzip;q=0.5, zstd"], brotli=False) == b"gzip;q=0.5, zstd"


def test_what_is_asked_for_in_small_windows() -> None:
    """INS-5: gzip needs none to speak of."""
    assert acceptable([b"br, gzip;q=0.5, zstd, deflate"], small=True) == b"gzip;q=0.5, deflate"
    assert acceptable([b"br, zstd"], small=True) == b"identity"
