"""What a destination's certificate may be: each kind that does not verify, and its neighbour that does (INS-3)."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import pytest
from cryptography import x509

from tests.certificates import CLIENTS, SERVERS, Made, must_staple, only_names
from tests.unit.gate.inside import Inside, get, inside, read_all
from tests.unit.gate.test_inspected import serving
from tidegate.model.reason import Reason
from tidegate.model.verdict import How

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.lab.api import Lab

    Start = Callable[..., Inside]
    Shown = tuple[str, str]  # what the server has, and what is trusted

__all__ = ["inside"]

LONG = ".".join(("a" * 63, "b" * 63, "c" * 63, "d" * 56, "test"))
assert len(LONG) == 253

_KEYS: dict[str, Made] = {}


def root() -> Made:
    """An authority that is trusted; one for all rows."""
    return _KEYS.setdefault("root", Made("root", ca=True))


def leaf(*names: str, common: str = "", **how: object) -> Shown:
    """A leaf of the root's."""
    return root().issue(common, names=names, **how).chain(), root().pem


def below(leaf_of: Callable[[Made], Made], middle: Made | None = None, *, sent: bool = True) -> Shown:
    """A leaf of an authority between."""
    middle = middle or root().issue("middle", ca=True)
    made = leaf_of(middle)
    return made.chain(middle) if sent else made.chain(), root().pem


def ours(issuer: Made) -> Made:
    """A leaf as it should be."""
    return issuer.issue("", names=["a.test"], usages=SERVERS)


def signed(digest: str, where: str) -> Shown:
    """A chain of RSA with an old digest in one place."""
    top = Made.rsa("rsa root", ca=True)
    middle = Made.rsa("rsa middle", top, ca=True, sign_with=digest if where == "middle" else "")
    made = Made.rsa("", middle, names=["a.test"], sign_with=digest if where == "leaf" else "")
    return made.chain(middle), top.pem


def weak(bits: int, where: str) -> Shown:
    """A chain with one key of so many bits."""
    top = Made.rsa("weak root", ca=True, bits=bits if where == "root" else 2048)
    return Made.rsa("", top, names=["a.test"], bits=bits if where == "leaf" else 2048).chain(), top.pem


def path_length(length: int) -> Shown:
    """Two authorities below one that allows so many."""
    first = root().issue("first", ca=True, path_length=length)
    second = first.issue("second", ca=True)
    return ours(second).chain(second, first), root().pem


def long_chain(count: int) -> Shown:
    """So many authorities, each below the one before."""
    chain = [root()]
    for number in range(count):
        chain.append(chain[-1].issue(f"m{number}", ca=True))
    return ours(chain[-1]).chain(*reversed(chain[1:])), root().pem


def out_of_order(*, twice: bool = False) -> Shown:
    """The authorities between in the wrong order, or each of them twice, with the root."""
    first = root().issue("first", ca=True)
    second = first.issue("second", ca=True)
    others = (second, first, second, first, root(), root()) if twice else (first, second)
    return ours(second).chain(*others), root().pem


def crossed(*, old_trusted: bool) -> Shown:
    """A new root that an expired old one has signed too, as of 2021 (DST Root CA X3): the other path is good."""
    old = Made("old root", ca=True, days=(-20, -1))
    new = root()
    cross = Made("root", old, ca=True, key=new.key, days=(-20, -1))
    return ours(new).chain(cross), (old.pem + new.pem if old_trusted else new.pem)


def two_paths_but_none() -> Shown:
    """The same without the new root: only the expired path is left."""
    old = Made("old root", ca=True, days=(-20, -1))
    cross = Made("root", old, ca=True, key=root().key, days=(-20, -1))
    return ours(root()).chain(cross), old.pem


def nul_in_name() -> Shown:
    """A name that ends early to who reads it as C does."""
    made = root().issue("", names=["a.test.evil.test"])
    good = bytes(made.der)
    bad = good.replace(b"a.test.evil.test", b"a.test\0evil.test")
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    old = x509.load_der_x509_certificate(good)
    tbs = old.tbs_certificate_bytes.replace(b"a.test.evil.test", b"a.test\0evil.test")
    assert isinstance(root().key, ec.EllipticCurvePrivateKey)
    for _ in range(1000):  # a signature is as long as its numbers: until one is as long as the old
        signature = root().key.sign(tbs, ec.ECDSA(hashes.SHA256()))
        if len(signature) == len(old.signature):
            break
    made.der = bad.replace(old.signature, signature)
    return made.chain(), root().pem


REFUSED: dict[str, tuple[Callable[[], Shown], str]] = {
    "expired": (lambda: leaf("a.test", days=(-3, -1)), "certificate has expired, by this machine's clock"),
    "not-yet": (lambda: leaf("a.test", days=(1, 3)), "certificate is not yet valid, by this machine's clock"),
    "expired-middle": (
        lambda: below(ours, root().issue("middle", ca=True, days=(-3, -1))), "certificate has expired",
    ),
    "other-name": (lambda: leaf("b.test"), "Hostname mismatch"),
    "name-below": (lambda: leaf("x.a.test"), "Hostname mismatch"),
    "only-common-name": (lambda: leaf(common="a.test"), "Hostname mismatch"),
    "other-names-but-common": (lambda: leaf("b.test", common="a.test"), "Hostname mismatch"),
    "wildcard-of-a-suffix": (lambda: leaf("*.test"), "Hostname mismatch"),
    "wildcard-alone": (lambda: leaf("*"), "Hostname mismatch"),
    "wildcard-is-no-apex": (lambda: leaf("*.a.test"), "Hostname mismatch"),
    "address-in-its-place": (lambda: leaf("ip:1.2.3.4"), "Hostname mismatch"),
    "address-as-a-name": (lambda: leaf("1.2.3.4"), "Hostname mismatch"),
    "nul-in-a-name": (nul_in_name, "Hostname mismatch"),
    "name-constraint": (lambda: below(ours, root().issue("m", ca=True, more=[only_names("b.test")])), "permitted"),
    "middle-missing": (lambda: below(ours, sent=False), "unable to get local issuer certificate"),
    "middle-no-authority": (lambda: below(ours, root().issue("m")), "invalid CA certificate"),
    "path-length": (lambda: path_length(0), "path length constraint exceeded"),
    "for-clients": (lambda: leaf("a.test", usages=CLIENTS), "unsuitable certificate purpose"),
    "middle-for-clients": (
        lambda: below(ours, root().issue("m", ca=True, usages=CLIENTS)), "unsuitable certificate purpose",
    ),
    "unknown-root": (lambda: (ours(Made("x", ca=True)).chain(), root().pem), "unable to get local issuer certificate"),
    "unknown-root-sent": (
        lambda: ((top := Made("x", ca=True)) and ours(top).chain(top), root().pem), "self-signed certificate",
    ),
    "self-signed": (lambda: (Made("a.test", names=["a.test"]).chain(), root().pem), "self-signed certificate"),
    "named-as-the-root": (
        lambda: (ours(Made("root", ca=True)).chain(), root().pem), "certificate signature failure",
    ),
    "md5-leaf": (lambda: signed("md5", "leaf"), "digest algorithm too weak"),
    "md5-middle": (lambda: signed("md5", "middle"), "digest algorithm too weak"),
    "sha1-leaf": (lambda: signed("sha1", "leaf"), "digest algorithm too weak"),
    "sha1-middle": (lambda: signed("sha1", "middle"), "digest algorithm too weak"),
    "rsa-1024": (lambda: weak(1024, "leaf"), "key too weak"),
    "rsa-1024-root": (lambda: weak(1024, "root"), "key too weak"),
    "only-the-expired-path": (two_paths_but_none, "expired"),
    "endless-chain": (lambda: long_chain(110), "certificate chain too long"),
}  # fmt: skip
"""Kind -> what the server has and what is trusted, and what people are told."""

PASSES: dict[str, Callable[[], Shown]] = {
    "plain": lambda: leaf("a.test", usages=SERVERS),
    "upper-case": lambda: leaf("A.Test"),
    "one-of-many": lambda: leaf("b.test", "*.c.test", "ip:1.2.3.4", "a.test"),
    "no-usage-named": lambda: leaf("a.test"),
    "middle-sent": lambda: below(ours),
    "name-constraint-kept": lambda: below(ours, root().issue("m", ca=True, more=[only_names("a.test")])),
    "path-length-kept": lambda: path_length(1),
    "wrong-order": out_of_order,
    "each-twice-with-the-root": lambda: out_of_order(twice=True),
    "expired-cross-signature": lambda: crossed(old_trusted=False),
    "expired-cross-signature-trusted": lambda: crossed(old_trusted=True),
    "long-chain": lambda: long_chain(20),
    "must-staple": lambda: leaf("a.test", more=[must_staple()]),
}


@pytest.fixture(autouse=True)
def _names(lab: Lab) -> None:
    lab.dns.set("a.test", A=["1.2.3.4"])


def shows(path: Path, chain: str) -> ssl.SSLContext:
    """A server that shows this chain, however weak it is."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    (path / "chain.pem").write_text(chain)
    context.load_cert_chain(path / "chain.pem")
    return context


def asked(gate: Inside, where: str, name: str | None = None) -> bytes:
    """Ask that host inside TLS."""
    host = where.rpartition(":")[0]
    with gate.tunnel(where, name=name) as sock:
        sock.sendall(get(host))
        return read_all(sock)


@pytest.mark.parametrize("kind", REFUSED)
def test_what_does_not_verify(lab: Lab, inside: Start, tmp_path: Path, kind: str) -> None:
    """INS-3, issue 6: a bad certificate of each kind: 502 inside TLS with the reason, and no request leaves."""
    make, said = REFUSED[kind]
    chain, roots = make()
    gate = inside("a.test:443", roots=roots)
    heard: list[bytes] = []
    with serving(lab, shows(tmp_path, chain), heard=heard):
        got = asked(gate, "a.test:443")
    assert got.startswith(b"HTTP/1.1 502 "), got
    assert said.encode().lower() in got.lower(), got
    event = gate.gate.event()
    assert (event.how, event.reason) == (How.REFUSED, Reason.UPSTREAM_CERTIFICATE)
    assert heard == []


def test_more_certificates_than_anybody_reads(lab: Lab, inside: Start, tmp_path: Path) -> None:
    """GAT-5, issue 6: a chain of hundreds of KiB is not taken in: the handshake ends, and the reason is told."""
    chain, roots = below(ours)
    gate = inside("a.test:443", roots=roots)
    with serving(lab, shows(tmp_path, chain + root().pem * 500)):
        got = asked(gate, "a.test:443")
    assert got.startswith(b"HTTP/1.1 502 "), got
    assert b"excessive message size" in got
    assert gate.gate.event().reason is Reason.UPSTREAM_TLS


@pytest.mark.parametrize("kind", PASSES)
def test_what_verifies(lab: Lab, inside: Start, tmp_path: Path, kind: str) -> None:
    """INS-3: the neighbours: whatever OpenSSL finds a good path for, however it is sent."""
    chain, roots = PASSES[kind]()
    gate = inside("a.test:443", roots=roots)
    with serving(lab, shows(tmp_path, chain)):
        assert asked(gate, "a.test:443").startswith(b"HTTP/1.1 200 ")


HOSTS = [
    ("x.a.test", ["*.a.test"], True),
    ("y.x.a.test", ["*.a.test"], False),
    ("foo.a.test", ["f*.a.test"], False),
    ("foo.a.test", ["*oo.a.test"], False),
    ("foo.a.test", ["f*o.a.test"], False),
    ("foo.a.test", ["foo.*.test"], False),
    ("a.co.test", ["*.co.test"], True),  # nobody knows here which names are sold below a suffix
    ("xn--bcher-kva.test", ["xn--bcher-kva.test"], True),
    ("xn--bcher-kva.test", ["xn--bcher-kvb.test"], False),
    ("xn--bcher-kva.a.test", ["*.a.test"], True),
    ("xn--bcher-kva.a.test", ["xn--*.a.test"], False),
    ("my_host.a.test", ["my_host.a.test"], True),
    ("my_host.a.test", ["*.a.test"], False),  # to OpenSSL a wildcard is letters, digits and hyphens
    ("a" * 63 + ".test", ["a" * 63 + ".test"], True),
    (LONG, [LONG], True),
    (LONG, ["*" + LONG[63:]], True),
    (LONG, ["b" + LONG[1:]], False),
    ("123.a.test", ["123.a.test"], True),
    ("123.a.test", ["*.a.test"], True),
    ("1.2.3.4", ["ip:1.2.3.4"], True),
    ("1.2.3.4", ["1.2.3.4"], False),
    ("1.2.3.4", ["ip:1.2.3.5"], False),
    ("1.2.3.4", ["ip:::ffff:1.2.3.4"], False),
    ("1.2.3.4", ["*.2.3.4"], False),
]


@pytest.mark.parametrize(("host", "names", "passes"), HOSTS)
def test_names_of_hosts(lab: Lab, inside: Start, tmp_path: Path, host: str, names: list[str], passes: bool) -> None:
    """INS-3, POL-3: wildcards of one whole label; IDN as A-labels; underscores, long names, numbers and addresses."""
    if not host[0].isdigit() or "test" in host:
        lab.dns.set(host, A=["1.2.3.4"])
    chain, roots = leaf(*names)
    gate = inside(f"{host}:443", roots=roots)
    with serving(lab, shows(tmp_path, chain)):
        got = asked(gate, f"{host}:443")
    assert got.startswith(b"HTTP/1.1 200 " if passes else b"HTTP/1.1 502 "), got
    assert passes or b"mismatch" in got


@pytest.mark.parametrize("spelled", ["A.TEST", "a.test.", "A.Test."])
def test_other_spellings_of_a_host_are_verified_as_one(lab: Lab, inside: Start, tmp_path: Path, spelled: str) -> None:
    """POL-3: upper case and a final dot are the same name to the destination's certificate and to ours."""
    chain, roots = leaf("a.test")
    gate = inside("a.test:443", roots=roots)
    with serving(lab, shows(tmp_path, chain)):
        assert asked(gate, f"{spelled}:443", name="a.test").startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    ("names", "passes"),
    [(["ip:2600:beef::4"], True), (["ip:2600:beef::5"], False), (["2600:beef::4", "ip:1.2.3.4"], False)],
)
def test_an_address_of_ipv6(lab: Lab, inside: Start, tmp_path: Path, names: list[str], passes: bool) -> None:
    """INS-1, INS-3: in brackets where it is named, without them in the certificate."""
    if not lab.ipv6:
        pytest.skip("there is no IPv6 here")
    chain, roots = leaf(*names)
    gate = inside("[2600:beef::4]:443", roots=roots)
    with serving(lab, shows(tmp_path, chain), at="2600:beef::4"):
        got = asked(gate, "[2600:beef::4]:443")
    assert got.startswith(b"HTTP/1.1 200 " if passes else b"HTTP/1.1 502 "), got


def test_an_ipv4_address_in_ipv6_clothes_is_not_that_address(lab: Lab, inside: Start, tmp_path: Path) -> None:
    """ADR-3, INS-1: the mapped form of an address is another host: to rules, and to certificates."""
    chain, roots = leaf("ip:1.2.3.4")
    mapped = "[::ffff:1.2.3.4]:443"
    connect = f"CONNECT {mapped} HTTP/1.1\r\nHost: {mapped}\r\n\r\n".encode()
    with serving(lab, shows(tmp_path, chain)):
        assert inside("1.2.3.4:443", roots=roots).gate.raw(connect).startswith(b"HTTP/1.1 403 ")
        got = asked(inside(mapped, roots=roots), mapped)
    assert got.startswith(b"HTTP/1.1 502 "), got
    assert b"IP address mismatch" in got
