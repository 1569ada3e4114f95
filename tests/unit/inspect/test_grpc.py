"""Messages of gRPC come out plain."""

from __future__ import annotations

import pytest

from tests.coded import coded
from tidegate.inspect.grpc import MOST_PACKED, MOST_PLAIN, Messages, messages_in
from tidegate.wire.errors import WireError


def message(data: bytes, flags: int = 0) -> bytes:
    """One message with what stands before it."""
    return bytes([flags]) + len(data).to_bytes(4) + data


def fed(messages: Messages, data: bytes, step: int) -> bytes:
    """In pieces."""
    return b"".join(messages.feed(data[at : at + step]) for at in range(0, len(data), step))


@pytest.mark.parametrize(
    ("kind", "has"),
    [
        (b"application/grpc", True),
        (b"application/grpc+proto", True),
        (b"application/grpc-web+proto", True),
        (b"application/grpc-web-text", False),
        (b"application/connect+json", True),
        (b"application/json", False),
        (b"", False),
    ],
)
def test_whose_bodies_are_messages(kind: bytes, *, has: bool) -> None:
    """INS-3: by their content type."""
    assert (messages_in({b"content-type": kind, b"grpc-encoding": b"identity"}) is not None) is has


@pytest.mark.parametrize(
    ("kind", "coding"), [(b"application/grpc", b"snappy"), (b"application/grpc-web-text+proto", b"gzip")]
)
def test_a_head_that_promises_what_cannot_be_read_is_refused(kind: bytes, coding: bytes) -> None:
    """INS-5: before a byte of the body is passed on; the same of another type is nobody's business."""
    with pytest.raises(WireError, match="not asked for"):
        messages_in({b"content-type": kind, b"grpc-encoding": coding})
    assert messages_in({b"content-type": b"text/plain", b"grpc-encoding": coding}) is None


@pytest.mark.parametrize("step", [1, 3, 1000])
def test_plain_ones_pass_and_a_compressed_one_without_a_coding_does_not(step: int) -> None:
    """INS-5: empty ones and grpc-web's trailers (flag 0x80) pass too, wherever they are cut."""
    good = message(b"x" * 300) + message(b"") + message(b"\1" * 9) + message(b"grpc-status: 0\r\n", 0x80)
    assert fed(Messages(b""), good, step) == good
    for bad in (message(b"z", 1), b"\x81"):
        with pytest.raises(WireError, match="compressed"):
            fed(Messages(b""), good + bad, step)


@pytest.mark.parametrize("step", [1, 3, 1000])
@pytest.mark.parametrize("kind", ["gzip", "deflate", "zstd"])
def test_compressed_ones_are_made_plain(kind: str, step: int) -> None:
    """INS-5: among plain ones, empty ones too; other flags stay."""
    row = [(b"one" * 90, 1), (b"two", 0), (b"", 1), (b"grpc-status: 0", 0x81)]
    data = b"".join(message(coded(text, kind) if flags & 1 else text, flags) for text, flags in row) + message(b"", 1)
    plain = b"".join(message(text, flags & ~1) for text, flags in row) + message(b"")
    assert fed(Messages(kind.encode()), data, step) == plain


def test_a_message_is_bounded_and_whole() -> None:
    """Issue 6: packed and unpacked, and cut short in its coding; the neighbour just fits."""
    fits = coded(
        b"".join(b"%06d....\n" % (number // 8) for number in range(MOST_PLAIN // 11)).ljust(MOST_PLAIN), "gzip"
    )
    assert len(fed(Messages(b"gzip"), message(fits, 1), 1 << 16)) == MOST_PLAIN + 5
    with pytest.raises(WireError, match="larger than"):
        fed(Messages(b"gzip"), b"\1" + (MOST_PACKED + 1).to_bytes(4), 9)
    for kind in ("gzip", "zstd"):
        with pytest.raises(WireError, match="beyond"):
            fed(Messages(kind.encode()), message(coded(bytes(MOST_PLAIN + 1), kind), 1), 1 << 16)
    with pytest.raises(WireError, match="in the middle"):
        fed(Messages(b"gzip"), message(fits[:-1], 1), 1 << 16)


def test_all_of_them_together_grow_within_measure() -> None:
    """INS-5, B118: a read of 16 KiB was half a gigabyte at once, each message within its own bound."""
    bomb = message(coded(bytes(1 << 20), "zstd"), 1)
    with pytest.raises(WireError, match="beyond measure"):
        fed(Messages(b"zstd"), bomb * 100, 1 << 14)
    text = b"a line that is said again and again\n" * 1000
    row = message(coded(text, "zstd"), 1)
    assert fed(Messages(b"zstd"), row * 20, 1 << 14) == message(text) * 20
    small = message(coded(b"x", "gzip"), 1)  # a stream of small ones has no end
    assert fed(Messages(b"gzip"), small * 5000, 1 << 14) == message(b"x") * 5000
