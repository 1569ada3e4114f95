"""CASES.md, rules and addresses: from the bytes of a request to the final decision, without any network.

Each test takes what a hostile or clumsy client sends, reads it as the gate does, decides it, resolves it by a table,
and admits the answer. The gate's own tests send the same over sockets.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

import pytest

from tidegate.addresses.admission import admit
from tidegate.addresses.surroundings import NOWHERE
from tidegate.model.destination import PortError, parse_authority
from tidegate.model.host import HostError
from tidegate.model.reason import Reason
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.decide import decide
from tidegate.policy.layers import command_line, join

if TYPE_CHECKING:
    from tidegate.policy.policy import Policy

ANSWERS = {
    "public.test": ["1.2.3.4"],
    "nat64.test": ["64:ff9b::102:304"],
    "private64.test": ["64:ff9b::a00:1"],
    "mapped.test": ["::ffff:127.0.0.1"],
    "metadata.test": ["::ffff:169.254.169.254"],
    "mixed.test": ["1.2.3.4", "127.0.0.1"],
    "localhost": ["127.0.0.1", "::1"],
}


class Gate:
    """Reads, decides and admits one request after another; `looked_up` are the names that were resolved."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.looked_up: list[str] = []

    def connect(self, target: bytes) -> Reason:
        """Return the reason a CONNECT to `target` ends with."""
        try:
            destination = parse_authority(target)
        except HostError:
            return Reason.BAD_HOST
        except PortError:
            return Reason.BAD_PORT
        decision = decide(self.policy, destination, Phase.RUNTIME)
        denied = self.policy.denied_literals(Phase.RUNTIME)
        if destination.host.packed is not None:
            return admit(decision, [destination.host.packed], NOWHERE, self.policy.modes, denied).reason
        if decision.verdict is not Verdict.ALLOW:
            return decision.reason
        self.looked_up.append(destination.host.text)
        answers = [ipaddress.ip_address(text).packed for text in ANSWERS[destination.host.text]]
        return admit(decision, answers, NOWHERE, self.policy.modes, denied).reason


def gate(allow: list[str], deny: list[str] | None = None) -> Gate:
    """Return a gate whose policy denies what these rules do not allow."""
    return Gate(join(command_line(allow=allow, deny=deny or [], profile="closed")))


def test_labels_and_apex() -> None:
    """Rules end at label boundaries, and a wildcard is one label that is not the apex (B01, B11)."""
    one = gate(["*.a.test", "b.test"])
    for target in (b"evila.test:443", b"a.test:443", b"x.y.a.test:443", b"xb.test:443", b"b.test.evil.test:443"):
        assert one.connect(target) is Reason.NO_RULE
    assert one.looked_up == []


def test_spellings() -> None:
    """Case and one final dot change nothing, for allows and for denies; two dots are malformed (B02)."""
    one = gate(["public.test"], ["meta.test"])
    assert one.connect(b"PUBLIC.test.:443") is Reason.ALLOWED
    assert one.connect(b"public.test..:443") is Reason.BAD_HOST
    for target in (b"meta.test:443", b"META.TEST.:443"):
        assert one.connect(target) is Reason.DENY_RULE
    assert one.connect(b"127.0.0.1.:443") is not Reason.ALLOWED


@pytest.mark.parametrize(
    "target",
    [
        b"127.0.0.1\x00.a.test:443",
        b"127.0.0.1\x01.a.test:443",
        b"127.0.0.1\t.a.test:443",
        b"127.0.0.1 .a.test:443",
        b"127.0.0.1\x7f.a.test:443",
        b"evil.test%00.a.test:443",
        b"evil.test%23.a.test:443",
        b"evil.test%2f.a.test:443",
        b"evil.test%40.a.test:443",
        "127\u30020\u30020\u30021:443".encode(),
        "127\uff0e0\uff0e0\uff0e1:443".encode(),
        "①②⑦.0.0.1:443".encode(),
        b"allowed.test:443@evil.a.test:443",
        b"0177.0.0.1:443",
        b"0x7f.1:443",
        b"0x7f000001:443",
        b"2130706433:443",
        b"127.1:443",
        b"0:443",
        b"[[::1]]:443",
        b"[::1:443",
        b"::1:443",
        b"[fe80::1%25lo]:443",
        b"[1.2.3.4]:443",
    ],
)
def test_malformed_before_anything_else(target: bytes) -> None:
    """What is no canonical host is malformed before rules and look-ups, even where everything is allowed.

    Proves B04 (NUL and friends), B05 (non-ASCII dots), B08 ('@'), B10 (percent), B25 (odd IPv4), B26 (brackets).
    """
    one = gate(["*", "**.a.test"])
    assert one.connect(target) is Reason.BAD_HOST
    assert one.looked_up == []


def test_bracketed_literals() -> None:
    """A well-formed literal is judged as the address it is (B26)."""
    assert gate(["*"]).connect(b"[::1]:443") is Reason.OWN_ADDRESS
    assert gate(["[2600:beef::1]:443"]).connect(b"[2600:BEEF::1]:443") is Reason.ALLOWED
    assert gate(["[2600:beef::1]:443"]).connect(b"[2600:beef::2]:443") is Reason.LITERAL_NOT_NAMED


def test_hard_denies() -> None:
    """A wide allow opens neither a denied address nor metadata (B13, B16)."""
    one = gate(["*", "10.1.1.4:80", "10.1.1.5:80"], ["10.1.1.5"])
    assert one.connect(b"10.1.1.4:80") is Reason.ALLOWED
    assert one.connect(b"10.1.1.5:80") is Reason.DENY_RULE
    assert one.connect(b"[::ffff:10.1.1.5]:80") is Reason.DENY_RULE
    assert one.connect(b"169.254.169.254:80") is Reason.NEVER_ADDRESS
    assert one.connect(b"[::ffff:169.254.169.254]:80") is Reason.NEVER_ADDRESS


def test_answers_that_carry_an_ipv4_address() -> None:
    """Answers are judged by the IPv4 address inside them; NAT64 to a public one passes (B17, B19, B20)."""
    one = gate(["**.test", "nat64.test"])
    assert one.connect(b"mapped.test:443") is Reason.OWN_ADDRESS
    assert one.connect(b"metadata.test:443") is Reason.NEVER_ADDRESS
    assert one.connect(b"private64.test:443") is Reason.PRIVATE_ADDRESS
    assert one.connect(b"nat64.test:443") is Reason.ALLOWED


def test_mixed_answers() -> None:
    """One inadmissible answer refuses the name (B23)."""
    assert gate(["mixed.test"]).connect(b"mixed.test:443") is Reason.OWN_ADDRESS


def test_the_exception_for_one_service() -> None:
    """`127.0.0.1:8081` opens itself only: no other port, no other address, no name (B28)."""
    one = gate(["127.0.0.1:8081"])
    assert one.connect(b"127.0.0.1:8081") is Reason.ALLOWED
    assert one.connect(b"127.0.0.1:8082") is Reason.PORT_NOT_ALLOWED
    assert one.connect(b"127.0.0.2:8081") is Reason.LITERAL_NOT_NAMED
    assert one.connect(b"localhost:8081") is Reason.NO_RULE
    assert gate(["localhost:8081"]).connect(b"localhost:8081") is Reason.ALLOWED


def test_a_refused_name_is_never_looked_up() -> None:
    """Verdict first: nothing about a refused name leaves this machine (B29)."""
    one = gate(["public.test"], ["**.evil.test"])
    assert one.connect(b"c2VjcmV0.evil.test:443") is Reason.DENY_RULE
    assert one.connect(b"c2VjcmV0.other.test:443") is Reason.NO_RULE
    assert one.connect(b"public.test:443") is Reason.ALLOWED
    assert one.looked_up == ["public.test"]
