"""Messages of gRPC that are compressed do not pass unread."""

from __future__ import annotations

import pytest

from tidegate.inspect.grpc import Messages, has_messages
from tidegate.wire.errors import WireError


def message(data: bytes, flags: int = 0) -> bytes:
    """One message with what stands before it."""
    return bytes([flags]) + len(data).to_bytes(4) + data


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
    assert has_messages({b"content-type": kind, b"grpc-encoding": b"identity"}) is has


@pytest.mark.parametrize("kind", [b"application/grpc", b"application/grpc-web-text+proto"])
def test_a_head_that_says_so_is_refused(kind: bytes) -> None:
    """INS-5: before a byte of the body is passed on."""
    with pytest.raises(WireError, match="compressed"):
        has_messages({b"content-type": kind, b"grpc-encoding": b"gzip"})
    has_messages({b"content-type": b"text/plain", b"grpc-encoding": b"gzip"})


@pytest.mark.parametrize("step", [1, 3, 1000])
def test_the_first_compressed_one_is_refused_wherever_it_is_cut(step: int) -> None:
    """INS-5: those before it pass, empty ones and grpc-web's trailers (flag 0x80) too."""
    good = message(b"x" * 300) + message(b"") + message(b"\1" * 9) + message(b"grpc-status: 0\r\n", 0x80)
    for end, passes in ((good, True), (good + message(b"z", 1), False), (good + b"\x81", False)):
        messages = Messages()
        if passes:
            look(messages, end, step)
            continue
        with pytest.raises(WireError, match="compressed"):
            look(messages, end, step)


def look(messages: Messages, data: bytes, step: int) -> None:
    """In pieces."""
    for at in range(0, len(data), step):
        messages.look(data[at : at + step])
