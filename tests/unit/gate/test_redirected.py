"""A refusal says who led the task there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.gate.inside import Inside, get, inside, read_all
from tests.unit.gate.kit import policy_of
from tests.unit.gate.test_inner_streams import GET, site, talk
from tests.unit.gate.test_secrets_inside import BEARER, NONE, STANDS, TOKEN
from tidegate.gate.redirected import LONGEST, MOST, _leads_to, came_from, note_redirect
from tidegate.gate.task import GateTask
from tidegate.model.destination import parse_authority

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tests.h2_site import H2Site
    from tests.lab.api import Lab

    Start = Callable[..., Inside]

__all__ = ["inside", "site", "talk"]

A = parse_authority("a.test:443")


@pytest.mark.parametrize(
    ("location", "to"),
    [
        (b"https://b.test/x?y#z", "b.test:443"),
        (b"HTTPS://B.test:8443", "b.test:8443"),
        (b"http://b.test?x", "b.test:80"),
        (b"//b.test/x", "b.test:443"),
        (b"https://u:p@b.test/", "b.test:443"),
        (b"https://[2001:db8::1]/", "[2001:db8::1]:443"),
        (b"/x//y", None),
        (b"ftp://b.test/", None),
        (b"https://b.test:x/", None),
        (b"https://", None),
        (b"https://\xff/", None),
        (b"", None),
        (b"https://b.test/" + b"x" * LONGEST, None),
    ],
)
def test_where_a_location_leads(location: bytes, to: str | None) -> None:
    """B125: what is no address of a web is nothing."""
    found = _leads_to(location)
    assert (None if found is None else str(found)) == to


def test_a_few_are_kept_and_the_last_counts() -> None:
    """GAT-5: whoever redirects without end fills nothing."""
    task = GateTask("t1", policy_of("a.test"))
    for number in range(2 * MOST):
        note_redirect(task, A, f"https://h{number}.test/".encode())
    note_redirect(task, A, b"https://a.test/again")
    assert len(task.redirects) == MOST
    last = parse_authority(f"h{2 * MOST - 1}.test:443")
    assert came_from(task, last) == "redirected from a.test:443"
    note_redirect(task, parse_authority("c.test:443"), str(last).join(("https://", "/")).encode())
    assert came_from(task, last) == "redirected from c.test:443"
    assert came_from(task, A) == came_from(task, parse_authority("h0.test:443")) == ""


def test_a_refused_host_names_both(lab: Lab, inside: Start) -> None:
    """B125, GAT-7: what a download leads to needs its own allow: 403 that names it, and who led there, for a tunnel."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("http", "1.2.3.4", 443, tls="a.test", status="302 Found", headers=["Location: https://blob.test/sig"])
    gate = inside("a.test:443", limit=NONE, secrets=TOKEN)
    connect = b"CONNECT blob.test:443 HTTP/1.1\r\nHost: blob.test:443\r\n\r\n"
    assert b"redirected" not in gate.gate.raw(connect)
    assert gate.ask("a.test:443", get("a.test", "/", BEARER, "Connection: close")).startswith(b"HTTP/1.1 302 ")
    got = gate.gate.raw(connect)
    assert got.startswith(b"HTTP/1.1 403 ")
    assert b"blob.test:443: no rule allows it" in got
    assert b"(redirected from a.test:443)" in got
    assert b'fix="--allow blob.test:443"' in got


def test_a_stand_in_that_was_led_away_names_both(lab: Lab, inside: Start) -> None:
    """B121, B125, INS-5: inside TLS and in clear text."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.dns.set("b.test", A=["1.2.3.5"])
    lab.origin("http", "1.2.3.4", 443, tls="a.test", status="307 T", headers=["Location: https://b.test/x"])
    away = lab.origin("echo", "1.2.3.5", 443, tls="b.test")
    gate = inside("a.test:443", "b.test:443", "b.test:80", secrets=TOKEN)
    assert b"does not belong to b.test:443)" in gate.ask("b.test:443", get("b.test", "/", BEARER))
    gate.ask("a.test:443", get("a.test", "/", BEARER, "Connection: close"))
    got = gate.ask("b.test:443", get("b.test", "/", BEARER))
    assert b"the secret TOKEN does not belong to b.test:443; redirected from a.test:443)" in got
    assert away.requests == 0
    with gate.tunnel("b.test:443") as sock:  # without it all passes
        sock.sendall(get("b.test", "/", "Connection: close"))
        assert read_all(sock).startswith(b"HTTP/1.1 200 ")


def test_over_http2_too(talk: Any, site: tuple[H2Site, str]) -> None:
    """B125: the Location of a stream counts as that of an answer of HTTP/1.1."""
    site[0].answers["/x"] = ([(":status", "302"), ("location", "https://blob.test/")], b"", [])
    client, gate = talk(secrets=TOKEN, limit=NONE)
    assert client.answer(client.ask(GET))[0][":status"] == "302"
    assert b"(redirected from a.test:443)" in gate.gate.raw(
        b"CONNECT blob.test:443 HTTP/1.1\r\nHost: blob.test\r\n\r\n"
    )
    assert STANDS not in b"".join(repr(event).encode() for event in gate.gate.recording.events)
