"""Names that say where a captured connection was going: what is said comes back, and nothing else is taken."""

from __future__ import annotations

import pytest

from tidegate.model.caught import MOST, PREFIX, name_of, place_of


@pytest.mark.parametrize("packed", [bytes(4), b"\1\2\3\4", b"\xff" * 4, bytes(16), b"\xfd" + bytes(14) + b"\1"])
@pytest.mark.parametrize("port", [0, 1, 443, 65535])
def test_what_is_said_comes_back(packed: bytes, port: int) -> None:
    """HLD-4: both families and every port; a name fits where the kernel has it, and begins as abstract ones do."""
    name = name_of(packed, port, b"12345678")
    assert name[0] == 0
    assert len(name) <= MOST
    assert place_of(name) == (packed, port)


@pytest.mark.parametrize(
    "name",
    [
        *("", "/run/x.sock", None, ("1.2.3.4", 80), b"", b"\0", PREFIX, PREFIX + b"01020304", PREFIX + b"01020304/80"),
        *(PREFIX + one for one in (b"010203/80/0", b"0102030405/80/0", b"01 02 03 04/80/0", b"0102030G/80/0")),
        *(PREFIX + b"01020304/%b/0" % port for port in (b"", b"-1", b"65536", b"080", b"8_0", b"\xb2", b" 80")),
        *(PREFIX + one for one in (b"01020304/80/0/0", b"FFFFFFFF/80/0", b"01020304/80/" + b"0" * 100, b"\xff/80/0")),
    ],
)
def test_anything_else_is_no_place(name: object) -> None:
    """Each is a ValueError, never another error and never a guess."""
    with pytest.raises(ValueError, match=r"."):
        place_of(name)
