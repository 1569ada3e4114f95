"""tidegate.journal.sinks.syslog: messages held to the grammar of RFC 5424, whatever a task put into the log."""

from __future__ import annotations

import re

import pytest

from tests.unit.journal.sinks.test_record import record
from tidegate.journal.sinks.syslog import DATAGRAM, framed, message

# RFC 5424, section 6, as far as these messages go.
_NAME = rb"[!#-<>-\\^-~]{1,32}"
_PARAM = _NAME + rb'="(?:[^"\\\]]|\\["\\\]])*"'
GRAMMAR = re.compile(
    rb"<(\d{1,3})>1 (\S{1,32}) ([!-~]{1,255}) ([!-~]{1,48}) ([!-~]{1,128}) ([!-~]{1,32}) "
    rb"\[(" + _NAME + rb")((?: " + _PARAM + rb")*)\] ([ -~]*)"
)


def test_a_message() -> None:
    """JRN-6: all of its fields; the message is the line of the log."""
    one = record(host="h.test:443", reason="no-rule", count=3)
    assert message(one, "box") == (
        b"<108>1 2026-11-29T00:00:00.125Z box tidegate - net.blocked "
        b'[tidegate@32473 seq="1" id="%s" task="t1" host="h.test:443" reason="no-rule" count="3"] %s'
    ) % (one.id.encode(), one.raw)


@pytest.mark.parametrize(
    ("kind", "pri"), [("task.created", 110), ("question.opened", 109), ("net.blocked", 108), ("journal.lost", 107)]
)
def test_priorities(kind: str, pri: int) -> None:
    """JRN-6: facility 13 times 8, and the severity."""
    assert message(record(kind), "box").startswith(b"<%d>1 " % pri)


@pytest.mark.parametrize(
    "host",
    [
        'a"] evil [b c="d', "a\\", 'a\\"', "a\nb<0>1 - - - - - - forged", "a\r\nb", "\x1b[2J", "\u202e", "\ud800",
        "x" * 1_000_000,         "a]", "tidegate@32473", "",
    ],
)  # fmt: skip
def test_nothing_ends_a_message_or_begins_another(host: str) -> None:
    """JRN-6, JRN-5: quotes, brackets, line ends, escapes and a name of a megabyte stay inside their value."""
    found = GRAMMAR.fullmatch(message(record(host=host), "box"))
    assert found
    assert found[7] == b"tidegate@32473"
    assert found[8].count(b' host="') == (1 if host else 0)
    assert b"\n" not in found[0]


@pytest.mark.parametrize("hostname", ["", "a b", "b\u00fcro", "x" * 300, "a\nb"])
def test_the_name_of_the_machine(hostname: str) -> None:
    """JRN-6: is one word of printable ASCII, or none."""
    assert GRAMMAR.fullmatch(message(record(), hostname))


def test_a_line_that_is_too_long_for_a_datagram() -> None:
    """JRN-6: comes without the line, and says so; its fields are there."""
    one = record("task.created", command=["x" * 2000] * 6)
    assert len(message(one, "box")) > DATAGRAM
    short = message(one, "box", DATAGRAM)
    assert len(short) < 500
    assert short.endswith(b"(the line is too long for a datagram)")
    assert GRAMMAR.fullmatch(short)


def test_octet_counting() -> None:
    """JRN-6: RFC 6587, 3.4.1: the length in bytes, a space, the message."""
    assert framed(b"<1>1 x") == b"6 <1>1 x"
