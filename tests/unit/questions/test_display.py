"""How a host looks to people."""

from __future__ import annotations

import unicodedata

import idna
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.host import HostError, canonical_host
from tidegate.questions.display import domain_of, look


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("example.com", ""),
        ("bücher.example", "bücher.example"),
        ("пример.com", "пример.com"),  # Cyrillic that nobody takes for Latin
        ("例え.jp", "例え.jp"),  # Han and Hiragana are one writing system
        ("카페.kr", "카페.kr"),
        ("δοκιμή.gr", "δοκιμή.gr"),
        ("münchen-2.de", "münchen-2.de"),
    ],
)
def test_names_that_cannot_deceive_have_a_label(name: str, label: str) -> None:
    """ASK-6: the Unicode form is shown where each label is in one script."""
    host = idna.encode(name).decode()
    assert look(host) == (label, ())


@pytest.mark.parametrize(
    ("host", "warning"),
    [
        ("xn--pple-43d.test", "xn--pple-43d mixes scripts: Cyrillic, Latin"),  # its first letter is Cyrillic (B07)
        ("xn--80ak6aa92e.com", "xn--80ak6aa92e is made of letters that look like Latin ones"),  # all Cyrillic
        ("xn--mxaqc1a.test", "xn--mxaqc1a is made of letters that look like Latin ones"),  # Greek
        ("xn--.test", "xn-- is no valid internationalised label"),
        ("xn--a-ecp.ru", "xn--a-ecp is no valid internationalised label"),
        ("xn--" + "9" * 30 + ".test", "is no valid internationalised label"),
    ],
)
def test_what_could_deceive_has_no_label_and_a_warning(host: str, warning: str) -> None:
    """B07, ASK-6: a look-alike is never shown as what it looks like, only as its A-label with a mark."""
    label, warnings = look(host)
    assert label == ""
    assert any(warning in one for one in warnings)


def test_long_labels_are_marked() -> None:
    """B29: a label that carries data is longer than names are; the neighbour below the bound is not marked."""
    assert look("a" * 40 + ".test")[1] == ("a label of 40 characters, which may be data in disguise",)
    assert look("a" * 39 + ".test") == ("", ())


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz0123456789-", max_size=12), st.text(max_size=8))
def test_nothing_that_moves_a_cursor_or_turns_a_line_gets_through(ace: str, text: str) -> None:
    """ASK-6: whatever a request names, label and warnings are printable, with no control or direction character."""
    for label in (f"xn--{ace}", "xn--" + text.encode("punycode").decode("ascii", "replace")):
        try:
            host = canonical_host(f"{label}.test")
        except HostError:
            continue
        shown, warnings = look(host.text)
        for line in (shown, *warnings):
            assert line.isprintable() or line == ""
            assert not {unicodedata.bidirectional(char) for char in line} & {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI"}
            assert not {unicodedata.category(char) for char in line} & {"Cc", "Cf"}


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("a.example.com", "example.com"),
        ("a.b.c.example.com", "example.com"),
        ("example.com", "example.com"),
        ("localhost", "localhost"),
        ("a.example.co.uk", "example.co.uk"),
        ("example.co.uk", "example.co.uk"),
        ("co.uk", "co.uk"),
        ("a.com.de.example", "de.example"),
        ("a.b.de", "b.de"),
    ],
)
def test_names_are_grouped_under_the_domain_that_someone_registered(host: str, domain: str) -> None:
    """ASK-7: the last two labels, or three where a country has a second level of its own."""
    assert domain_of(host) == domain
