"""The beginning of a connection that is read: who may pass at all, and what a destination that is no good comes to."""

from __future__ import annotations

import contextlib
import datetime as dt
import shutil
import socket
import ssl
import subprocess
import threading
import time
from typing import TYPE_CHECKING

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from tests.unit.gate.inside import Inside, answer, get, inside, read_all
from tests.unit.gate.kit import client_hello, read_exactly, read_head, small
from tidegate.model.reason import Reason
from tidegate.model.rule import Layer, Origin, RuleLimits, only
from tidegate.model.verdict import How, Phase, Verdict
from tidegate.policy.rows import rule_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.lab.api import Lab
    from tests.unit.gate.kit import Serving

    Start = Callable[..., Inside]

__all__ = ["inside"]


def made(*, client_only: bool) -> tuple[bytes, str]:
    """A certificate by an authority of its own that is for clients only, or one that is its own; and what to trust."""
    now = dt.datetime.now(dt.UTC)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a.test")])
    use = ExtendedKeyUsageOID.CLIENT_AUTH if client_only else ExtendedKeyUsageOID.SERVER_AUTH
    cert = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("a.test")]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([use]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = cert.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return private + pem, pem.decode() if client_only else trustme.CA().cert_pem.bytes().decode()


@pytest.fixture(autouse=True)
def _names(lab: Lab) -> None:
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.dns.set("b.test", A=["1.2.3.5"])


def test_without_an_inspector_such_a_tunnel_is_refused(lab: Lab, serve: Callable[..., Serving]) -> None:
    """INS-6: methods and paths that could not be judged open no tunnel."""
    origin = lab.origin("canary", "1.2.3.4", 443)
    gate = serve("a.test:443", limit=RuleLimits(requests=only(methods=("GET",))))
    got = gate.raw(b"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 403 ")
    assert origin.connections == 0


def test_a_host_without_methods_or_paths_stays_a_tunnel(lab: Lab, inside: Start) -> None:
    """INS-1: nothing is read unless a rule asks; its own certificate reaches the client."""
    lab.origin("http", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443", limit=RuleLimits(bytes_up=1_000_000))
    with gate.tunnel("a.test:443", context=ssl.create_default_context(cafile=lab.ca_file)) as sock:  # noqa: TID251
        sock.sendall(get("a.test", "/", "Connection: close"))
        assert read_all(sock).startswith(b"HTTP/1.1 200 ")
    assert gate.gate.event().how is How.TUNNELED


@pytest.mark.parametrize(
    ("first", "answered"),
    [
        (b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", b"HTTP/1.1 403 Forbidden\r\n"),
        (b"SSH-2.0-OpenSSH_9\r\n", b""),
        (b"\x00\x00\x00\x08\x04\xd2\x16\x2f", b""),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b""),
        (client_hello("b.test"), b"\x15\x03"),
        (client_hello("a.test", ("imap", "smtp")), b"\x15\x03\x03\x00\x02\x02\x78"),
        (b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", b"\x15\x03"),
    ],
    ids=["http", "ssh", "postgres", "h2c", "other-sni", "other-alpn", "broken-hello"],
)
def test_only_tls_for_that_host_with_http_inside_begins(lab: Lab, inside: Start, first: bytes, answered: bytes) -> None:
    """INS-1: everything else is refused in its own protocol, and the server hears no byte of it."""
    origin = lab.origin("canary", "1.2.3.4", 443)
    gate = inside("a.test:443")
    with gate.gate.tunnel("a.test:443") as sock:
        sock.sendall(first)
        got = read_all(sock)
    assert got.startswith(answered)
    assert bool(got) is bool(answered)
    event = gate.gate.event()
    assert (event.how, event.verdict) == (How.REFUSED, Verdict.DENY)
    assert origin.received == b""


def test_a_server_that_speaks_first_is_not_heard(lab: Lab, inside: Start) -> None:
    """INS-1: what looks like an inspected port and is ssh passes in neither direction."""
    lab.origin("banner", "1.2.3.4", 443)
    gate = inside("a.test:443", limits=small(total_seconds=1.0))
    with gate.gate.tunnel("a.test:443") as sock:
        assert read_all(sock) == b""
    assert gate.gate.event().how is How.REFUSED


def test_a_hello_byte_by_byte_or_with_the_connect(lab: Lab, inside: Start) -> None:
    """GAT-9, B29: the hello may come in pieces, or in the segment of the CONNECT."""
    lab.origin("http", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443")
    for pieces in (1, 0):
        come, go = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = gate.context().wrap_bio(come, go, server_hostname="a.test")
        with pytest.raises(ssl.SSLWantReadError):
            tls.do_handshake()
        hello = go.read()
        with gate.gate.connect() as sock:
            connect = b"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n"
            if pieces:
                sock.sendall(connect)
                read_head(sock)
                for byte in hello:
                    sock.send(bytes([byte]))
            else:
                sock.sendall(connect + hello)
                read_head(sock)
            while True:
                come.write(sock.recv(65536))
                try:
                    tls.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    continue
            sock.sendall(go.read())
        gate.gate.idle()
    assert [event.how for event in gate.gate.events(2)] == [How.INSPECTED] * 2


@contextlib.contextmanager
def serving(
    lab: Lab,
    context: ssl.SSLContext,
    at: str = "1.2.3.4",
    heard: list[bytes] | None = None,
    shown: list[object] | None = None,
) -> Iterator[None]:
    """Serve TLS at port 443 with this context: one short answer a connection, to what is `heard`.

    `shown` are the certificates of its clients, None for none.
    """
    listener = lab.listener(at, 443)

    def run() -> None:
        while True:
            try:
                sock = listener.accept()[0]
            except OSError:
                return
            with contextlib.suppress(OSError), context.wrap_socket(sock, server_side=True) as inner:
                if shown is not None:
                    shown.append(inner.getpeercert())
                data = inner.recv(4096)
                if heard is not None and data:
                    heard.append(data)
                inner.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def refused(gate: Inside, reason: Reason) -> bytes:
    """Ask inside TLS, and see the refusal in the answer and in the journal."""
    with gate.tunnel("a.test:443") as sock:
        sock.sendall(get("a.test"))
        got = read_all(sock)
    status = str(reason.status).encode()
    assert got.startswith(b"HTTP/1.1 " + status)
    assert f'error={reason.proxy_error}; details="{reason.word}"'.encode() in got
    event = gate.gate.event()
    assert (event.how, event.reason, event.status) == (How.REFUSED, reason, reason.status)
    return got


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("good", b""),
        ("untrusted", b"unable to get local issuer certificate"),
        ("other-name", b"Hostname mismatch"),
        ("expired", b"certificate has expired"),
        ("self-signed", b"self-signed certificate"),
        ("client-only", b"unsuitable certificate purpose"),
    ],
)
def test_a_destination_that_does_not_verify_is_refused(
    lab: Lab, inside: Start, tmp_path: Path, kind: str, said: bytes
) -> None:
    """INS-3: a bad certificate of each kind: no request leaves; 502 inside TLS and the journal name the reason."""
    now = dt.datetime.now(dt.UTC)
    trusted, other = trustme.CA(), trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if kind in {"self-signed", "client-only"}:
        chain, roots = made(client_only=kind == "client-only")
        (tmp_path / "chain.pem").write_bytes(chain)
        context.load_cert_chain(tmp_path / "chain.pem")
    else:
        issuer = other if kind == "untrusted" else trusted
        until = now - dt.timedelta(days=1) if kind == "expired" else None
        issuer.issue_cert("b.test" if kind == "other-name" else "a.test", not_after=until).configure_cert(context)
        roots = trusted.cert_pem.bytes().decode()
    gate = inside("a.test:443", roots=roots)
    with serving(lab, context):
        if kind == "good":
            assert gate.ask("a.test:443", get("a.test")).startswith(b"HTTP/1.1 200 ")
        else:
            assert said in refused(gate, Reason.UPSTREAM_CERTIFICATE)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_destination_that_wants_a_client_certificate(lab: Lab, inside: Start, version: ssl.TLSVersion) -> None:
    """B113: 502 that names `inspect: never`; with that it is a tunnel, and the client's own certificate passes."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = context.maximum_version = version
    context.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(context)
    authority.issue_cert("a.test").configure_cert(context)
    roots = authority.cert_pem.bytes().decode()
    tls12 = version is ssl.TLSVersion.TLSv1_2
    with serving(lab, context):
        got = refused(inside("a.test:443", roots=roots), Reason.UPSTREAM_TLS if tls12 else Reason.CLIENT_CERTIFICATE)
        assert b"inspect: " in got
        exempt = rule_row("a.test", Verdict.DENY, Phase.RUNTIME, "policy", "p:1:1", Origin.WRITTEN, Layer.USER)
        gate = inside("a.test:443", limit=RuleLimits(bytes_up=1 << 20), never_inspected=(exempt,), roots=roots)
        mine = ssl.create_default_context(cadata=roots)  # noqa: TID251
        authority.issue_cert("client@a.test").configure_cert(mine)
        with gate.tunnel("a.test:443", context=mine) as sock:
            sock.sendall(get("a.test"))
            assert answer(sock)[1] == b"hi"


@pytest.mark.parametrize("kind", ["silent", "closes", "resets", "clear"])
def test_a_destination_that_speaks_no_tls(lab: Lab, inside: Start, kind: str) -> None:
    """INS-3: told apart from a bad certificate, and in time."""
    reason = Reason.UPSTREAM_TLS
    if kind == "silent":
        lab.origin("silent", "1.2.3.4", 443)
        reason = Reason.UPSTREAM_TIMEOUT
    elif kind == "closes":
        lab.origin("script", "1.2.3.4", 443, steps=[["read", 20]])
    elif kind == "resets":
        lab.origin("script", "1.2.3.4", 443, steps=[["read", 20], ["reset"]])
    else:
        lab.origin("script", "1.2.3.4", 443, steps=[["read", 20], ["send", "HTTP/1.1 400 Bad Request\r\n\r\n"]])
    refused(inside("a.test:443", limits=small(total_seconds=1.0) if kind == "silent" else small()), reason)


def test_the_lack_of_an_authority_in_the_client_reaches_no_server_as_a_request(lab: Lab, inside: Start) -> None:
    """INS-2: a client that does not trust the authority gives up, and nothing was asked of the destination."""
    origin = lab.origin("http", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443")
    with pytest.raises(ssl.SSLCertVerificationError):
        gate.tunnel("a.test:443", context=ssl.create_default_context(cafile=lab.ca_file))  # noqa: TID251
    assert gate.gate.event().how is How.REFUSED
    assert "unknown ca" in gate.gate.event().detail
    assert origin.requests == 0


def test_an_address_that_is_read_has_an_authority_of_its_own(lab: Lab, inside: Start) -> None:
    """INS-1, B104: a literal with methods: an IP in the certificate, no name; an SNI on it is refused."""
    lab.origin("http", "1.2.3.4", 443, tls="1.2.3.4")
    gate = inside("1.2.3.4:443", limit=RuleLimits(requests=only(methods=("GET",))))
    with gate.tunnel("1.2.3.4:443") as sock:
        sock.sendall(get("1.2.3.4", "/", "Connection: close"))
        assert read_all(sock).startswith(b"HTTP/1.1 200 ")
    with gate.gate.tunnel("1.2.3.4:443") as sock:
        sock.sendall(client_hello("a.test"))
        assert read_exactly(sock, 2) == b"\x15\x03"


def test_a_rule_that_came_after_the_start_is_refused_not_let_through(lab: Lab, inside: Start) -> None:
    """INS-1: the authority is for the hosts of the start; a later rule with paths has none, and opens no tunnel."""
    lab.origin("canary", "1.2.3.5", 443)
    gate = inside("a.test:443")
    from tests.unit.gate.kit import policy_of

    later = policy_of("b.test:443", limit=RuleLimits(requests=only(methods=("GET",))))
    gate.gate.on_thread(lambda: gate.gate.task.change(policy=later))
    got = gate.gate.raw(b"CONNECT b.test:443 HTTP/1.1\r\nHost: b.test:443\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 403 ")


def test_a_silent_client_or_destination_ends_in_time(lab: Lab, inside: Start) -> None:
    """GAT-6: neither half of a handshake holds a connection for ever."""
    lab.origin("silent", "1.2.3.4", 443)
    gate = inside("a.test:443", limits=small(total_seconds=2.0, header_seconds=2.0))
    began = time.monotonic()
    with gate.gate.tunnel("a.test:443") as sock:
        assert read_all(sock) == b""
    with gate.gate.tunnel("a.test:443") as sock:
        sock.sendall(client_hello("a.test"))
        assert read_all(sock)[:1] == b"\x16"  # the handshake that would bring the reason, and then the end
    assert time.monotonic() - began < 50
    assert [event.reason for event in gate.gate.events(2)] == [Reason.HEADER_TIMEOUT, Reason.UPSTREAM_TIMEOUT]


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_through_the_gate(lab: Lab, inside: Start, tmp_path: Path) -> None:
    """INS-3: a real client by CONNECT, with the roots of the task alone; the refusal is what it prints."""
    lab.origin("http", "1.2.3.4", 443, tls="a.test", body="hello")
    gate = inside("a.test:443", limit=RuleLimits(requests=only(methods=("GET",))))
    roots = tmp_path / "roots.pem"
    roots.write_text(gate.trusted)
    proxy = "http://{}:{}".format(*gate.gate.address)
    argv = ["curl", "-sS", "--max-time", "20", "--proxy", proxy, "--cacert", str(roots)]
    done = subprocess.run([*argv, "https://a.test/"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "hello"), done.stderr
    done = subprocess.run([*argv, "-X", "DELETE", "https://a.test/"], capture_output=True, text=True, check=False)
    assert "method-not-allowed" in done.stdout


def test_clients_of_one_task_do_not_wait_for_each_other(lab: Lab, inside: Start) -> None:
    """GAT-11: twenty connections at once, each with its own requests."""
    lab.origin("echo", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443")
    socks = [gate.tunnel("a.test:443") for _ in range(20)]
    for number, sock in enumerate(socks):
        sock.sendall(get("a.test", f"/{number}"))
    for number, sock in reversed(list(enumerate(socks))):
        assert f"GET /{number} ".encode() in answer(sock)[1]
        sock.close()
    gate.gate.idle()
