"""tidegate.cli.policy.options."""

from __future__ import annotations

import pytest

from tidegate.cli.policy.options import address_of, destination_of, this_machine
from tidegate.model.errors import UsageError


@pytest.mark.parametrize(
    ("text", "packed"),
    [("1.2.3.4", b"\1\2\3\4"), ("::1", b"\0" * 15 + b"\1"), ("[::1]", b"\0" * 15 + b"\1")],
)
def test_addresses_with_or_without_brackets(text: str, packed: bytes) -> None:
    """POL-14: --address takes what people copy."""
    assert address_of(text) == packed


@pytest.mark.parametrize(
    "text", ["", "a.com", "1.2.3", "01.2.3.4", "1.2.3.4:80", "[1.2.3.4]", "::1%lo", "[::1", "\u0661.2.3.4"]
)
def test_what_is_no_address(text: str) -> None:
    """POL-3: the one normaliser judges, so 010 and zones are none."""
    with pytest.raises(UsageError):
        address_of(text)


def test_the_port_is_443_when_absent() -> None:
    """POL-14: HOST stands for HOST:443."""
    assert str(destination_of("Example.com.")) == "example.com:443"
    assert str(destination_of("[2600:BEEF::1]:80")) == "[2600:beef::1]:80"


def test_this_machine_knows_its_own_addresses() -> None:
    """ADR-2: the interfaces of this network namespace are own addresses; no look-up is needed for it."""
    assert b"\x7f\0\0\1" in this_machine().own
