"""tidegate.model.destination."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.destination import PortError, parse_authority, parse_port, split_authority
from tidegate.model.host import HostError


@pytest.mark.parametrize(("text", "port"), [("1", 1), ("443", 443), ("65535", 65535)])
def test_ports_are_plain_numbers(text: str, port: int) -> None:
    """B44: one to five digits from 1 to 65535."""
    assert parse_port(text) == port


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "65536",
        "99999",
        "100000",
        "+443",
        "-1",
        "0443",
        "443x",
        " 443",
        "443 ",
        "4 43",
        "\uff14\uff14\uff13",
        "1_0",
        "0x50",
    ],
)
def test_other_spellings_of_a_port_are_refused(text: str) -> None:
    """GAT-1, B44: signs, zeros, spaces, other digits and what int() would forgive."""
    with pytest.raises(PortError):
        parse_port(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("EXAMPLE.com.:443", "example.com:443"),
        ("1.2.3.4:80", "1.2.3.4:80"),
        ("[2600:BEEF::1]:443", "[2600:beef::1]:443"),
    ],
)
def test_an_authority_is_a_host_and_a_port(text: str, shown: str) -> None:
    """POL-3, B26: what is shown is the canonical form, brackets included."""
    assert str(parse_authority(text)) == shown
    assert parse_authority(text) == parse_authority(text.encode())


def test_a_default_port_stands_in_only_where_none_is_written() -> None:
    """B44: CONNECT needs a port; a URL has its scheme's."""
    assert parse_authority("a.test", 80).port == 80
    assert parse_authority("a.test:81", 80).port == 81
    assert parse_authority("[::1]", 80).port == 80
    for text in ("a.test:", "[::1]:"):
        with pytest.raises(PortError):
            parse_authority(text, 80)
    with pytest.raises(PortError):
        parse_authority("a.test")


@pytest.mark.parametrize(
    "text",
    [
        "2001:db8::1:443", "::1:443", "[::1:443", "[[::1]]:443", "[::1]443", ":443", "a@b:443", "u:p@a.test:443",
        "allowed.test:443@evil.test:443", "http://a.test:443", "a.test:443:443", "",
    ],
)  # fmt: skip
def test_ambiguous_authorities_are_refused(text: str) -> None:
    """GAT-1, B08, B26, B43: nothing is guessed where two readers could differ."""
    with pytest.raises((HostError, PortError)):
        parse_authority(text)


@given(st.binary(max_size=80))
def test_any_bytes_are_an_authority_or_one_of_two_errors(raw: bytes) -> None:
    """B43: total; what is accepted reads back as itself."""
    try:
        destination = parse_authority(raw)
    except (HostError, PortError):
        return
    assert parse_authority(str(destination)) == destination
    host, port = split_authority(raw)
    assert port is not None
    assert host
