"""TLS on memory: contexts, leafs and sessions, each bounded and renewed."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import ssl
from functools import cache
from typing import TYPE_CHECKING

import pytest
import trustme

from tests.descriptors import descriptors
from tidegate.inspect import terminate
from tidegate.inspect.authority import AUTHORITY_LIFE, DAY, LEAF_LIFE, Authority
from tidegate.inspect.terminate import Contexts, Tls
from tidegate.model.destination import Destination
from tidegate.model.host import canonical_host
from tidegate.model.reason import Reason
from tidegate.policy.scope import Scope
from tidegate.wire.client_hello import ClientHello, ClientHelloReader

if TYPE_CHECKING:
    from typing import Any

START = 1_900_000_000.0


class World:
    """Contexts with a clock that a test moves, and a destination with its own authority."""

    def __init__(self) -> None:
        self.now = START
        self.authority = Authority(Scope(suffixes=("test",)), "t", lambda: self.now)
        self.origin = trustme.CA()
        roots = self.origin.cert_pem.bytes().decode()
        self.contexts = Contexts(self.authority, roots, lambda: self.now)
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.origin.issue_cert("a.test").configure_cert(self.server)

    def client(self, name: str) -> Any:
        """The leaf that a client of the task is shown."""
        return self.contexts.client(to(name), b"")

    def reach(self, port: int = 443) -> tuple[Tls, ssl.SSLObject]:
        """Shake hands with the destination, and take what it says afterwards (tickets)."""
        ours = self.contexts.upstream(Destination(canonical_host("a.test"), port), ())
        come, go = ssl.MemoryBIO(), ssl.MemoryBIO()
        theirs = self.server.wrap_bio(come, go, server_side=True)
        done = False
        while not done:
            done = ours.shake()
            come.write(ours.take())
            try:
                theirs.do_handshake()
            except ssl.SSLWantReadError:
                done = False
            ours.feed(go.read())
        assert ours.read_into(bytearray(100), 100) is None
        return ours, theirs


def to(name: str) -> Destination:
    """Its HTTPS port."""
    return Destination(canonical_host(name), 443)


@pytest.fixture
def world() -> World:
    """A new one."""
    return World()


def test_a_leaf_is_kept_and_renewed_before_its_end(world: World) -> None:
    """B107: one context for a host while its leaf is good; another one when a third of its life is left."""
    world.client("a.test")
    ((kept, _),) = world.contexts._leafs.values()
    world.now += LEAF_LIFE / 2
    world.client("a.test")
    assert world.contexts._leafs["a.test", b""][0] is kept
    world.now = START + LEAF_LIFE * 2 / 3 + 1
    world.client("a.test")
    assert world.contexts._leafs["a.test", b""][0] is not kept


def test_past_the_authoritys_end_there_is_no_certificate(world: World) -> None:
    """B107: a task that runs longer than its authority hears of it, and is not shown an expired leaf."""
    world.now += AUTHORITY_LIFE + DAY
    with pytest.raises(ssl.SSLError, match="no certificate"):
        world.client("a.test")


def test_contexts_and_sessions_are_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """INS-1: a task that names many hosts fills no memory."""
    monkeypatch.setattr(terminate, "CACHED", 3)
    for number in range(5):
        world.client(f"h{number}.test")
    assert [key[0] for key in world.contexts._leafs] == ["h2.test", "h3.test", "h4.test"]
    for port in range(1, 6):
        world.reach(port)[0].worked()
    assert len(world.contexts._sessions) == 3


def test_a_leaf_leaves_no_file_and_no_descriptor(world: World) -> None:
    """INS-1: key and certificate get into OpenSSL through memory that is closed again."""
    world.client("warm.test")
    before = descriptors()
    world.client("a.test")
    assert descriptors() <= before


def test_sessions_are_for_one_host_port_and_an_hour(world: World) -> None:
    """B113: resumed for the same destination only, and the certificate is verified anew after an hour."""
    first, theirs = world.reach()
    assert not theirs.session_reused
    first.worked()
    second, theirs = world.reach()
    assert theirs.session_reused
    second.worked()
    world.now += terminate.SESSION_SECONDS + 1  # counted from the first, whose certificate was verified
    assert not world.reach()[1].session_reused


class _Mallinfo(ctypes.Structure):
    """What mallinfo2(3) returns."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks"),
            "keepcost",
        )
    )


def test_what_tickets_were_read_with_is_given_back(world: World) -> None:
    """GAT-11: an idle connection whose tickets came behind its request holds no buffer of 16 KiB."""
    if ssl.OPENSSL_VERSION_INFO >= (3, 2):
        pytest.skip("this OpenSSL keeps its buffers, whatever is written (docs/decisions/0019)")
    info = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if info is None:
        pytest.skip("this C library does not say how much is in use")
    info.restype = _Mallinfo

    def used() -> int:
        gc.collect()
        return int(info().uordblks)

    world.reach()[0].worked()
    kept = [world.reach() for _ in range(50)]
    before = used()
    for ours, _ in kept:
        ours.worked()
        assert not ours.pending
    assert before - used() > 50 * 8192
    ours, theirs = kept[0]
    assert ours.write(b"hello")
    assert theirs.session_reused


def test_another_host_never_gets_a_session(world: World) -> None:
    """INS-3: a destination that is good for one name is verified anew for another, and fails."""
    world.reach()[0].worked()
    ours = world.contexts.upstream(to("b.test"), ())
    with pytest.raises(ssl.SSLError):
        _shake_with(world, ours)
    assert ours.why()[0] is Reason.UPSTREAM_CERTIFICATE
    assert "a.test" in ours.why()[1] or "Hostname mismatch" in ours.why()[1]


def _shake_with(world: World, ours: Tls) -> None:
    come, go = ssl.MemoryBIO(), ssl.MemoryBIO()
    theirs = world.server.wrap_bio(come, go, server_side=True)
    for _ in range(4):
        ours.shake()
        come.write(ours.take())
        with contextlib.suppress(ssl.SSLWantReadError):
            theirs.do_handshake()
        ours.feed(go.read())


@pytest.mark.parametrize(
    ("offered", "passed"),
    [((), ()), ((b"http/1.1",), (b"http/1.1",)), ((b"acme-tls/1", b"http/1.1"), (b"http/1.1",)), ((b"imap",), None)],
)
def test_only_protocols_that_are_spoken_are_offered_on(world: World, offered: tuple, passed: tuple | None) -> None:
    """INS-3: what a client offers and is not HTTP is not offered to the destination; without any HTTP there is none."""
    assert world.contexts.offers(offered) == passed


def test_no_list_of_a_client_makes_more_contexts(world: World) -> None:
    """GAT-5: a context with all roots is large; whatever clients offer, there is one, and each offers its own."""
    terminate.verifying.cache_clear()
    for at in range(64):
        alpn = tuple(b"h2" if at >> bit & 1 else b"http/1.1" for bit in range(6))
        offered = world.contexts.offers(alpn)
        assert offered is not None
        ours = world.contexts.upstream(to("a.test"), offered)
        other = world.contexts.upstream(to("a.test"), ())
        for one, asked in ((ours, offered), (other, ())):
            assert not one.shake()
            hello = ClientHelloReader().feed(one.take())
            assert isinstance(hello, ClientHello)
            assert hello.alpn == asked
    assert terminate.verifying.cache_info().currsize == 1


def test_tasks_share_what_verifies_and_nothing_else(world: World) -> None:
    """GAT-11: roots are read once for all tasks that trust the same; a session stays with its task."""
    other = World()
    other.contexts = Contexts(other.authority, world.origin.cert_pem.bytes().decode(), lambda: other.now)
    other.server = world.server
    before = terminate.verifying.cache_info().misses
    world.reach()[0].worked()
    ours, theirs = other.reach()
    assert terminate.verifying.cache_info().misses == before + 1
    assert not theirs.session_reused
    ours.worked()
    assert world.reach()[1].session_reused
    assert other.reach()[1].session_reused


def test_a_session_whose_context_is_gone_is_not_resumed(world: World) -> None:
    """B113, GAT-11: many lists of roots push one out; its hosts are verified anew, and served at once."""
    world.reach()[0].worked()
    terminate.verifying.cache_clear()
    ours, theirs = world.reach()
    assert not theirs.session_reused
    ours.worked()
    world.now += terminate.SESSION_SECONDS - 1
    assert world.reach()[1].session_reused  # the hour is counted from the handshake that verified


@cache
def _old_client(tickets: bool) -> ssl.SSLContext:
    """Its context: a session can be offered by the same one alone."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_mode = ssl.CERT_NONE
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    if not tickets:
        client.options |= ssl.OP_NO_TICKET
    return client


def _meet(
    contexts: Contexts, name: str, alpn: bytes, session: ssl.SSLSession | None, *, tickets: bool
) -> ssl.SSLObject:
    """A client of TLS 1.2 that is shown the leaf of this name, and offers what it got before."""
    client = _old_client(tickets)
    ours = contexts.client(to(name), alpn)
    come, go = ssl.MemoryBIO(), ssl.MemoryBIO()
    theirs = client.wrap_bio(come, go, server_hostname=name, session=session)
    done = False
    while not done:
        with contextlib.suppress(ssl.SSLWantReadError):
            theirs.do_handshake()
        ours.feed(go.read())
        done = ours.shake()
        come.write(ours.take())
    with contextlib.suppress(ssl.SSLWantReadError):
        theirs.do_handshake()
    ours.close()  # of one that ends without, OpenSSL keeps nothing
    return theirs


@pytest.mark.parametrize("tickets", [True, False])
def test_what_a_client_got_is_good_for_one_host_task_and_protocol(world: World, tickets: bool) -> None:
    """B113, issue 6: a session of TLS 1.2 resumes where it was made alone: not for another host, task, protocol."""
    session = _meet(world.contexts, "a.test", b"", None, tickets=tickets).session
    other = Contexts(world.authority, "", lambda: world.now)
    assert _meet(world.contexts, "a.test", b"", session, tickets=tickets).session_reused
    for contexts, name, alpn in (
        (world.contexts, "b.test", b""),
        (world.contexts, "a.test", b"h2"),
        (other, "a.test", b""),
    ):
        assert not _meet(contexts, name, alpn, session, tickets=tickets).session_reused


def test_clients_without_tickets_fill_no_memory(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """GAT-11: OpenSSL would remember 20,480 of them for each host."""
    monkeypatch.setattr(terminate, "REMEMBERED", 3)
    most = 0
    for _ in range(12):
        _meet(world.contexts, "a.test", b"", None, tickets=False)
        most = max(most, world.contexts._leafs["a.test", b""][0].session_stats()["number"])
    assert most == 4


def test_a_client_of_the_task_gets_no_ticket(world: World) -> None:
    """INS-3: nothing is told after the handshake, so an answer is the first packet behind it."""
    ours = world.client("a.test")
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_mode = ssl.CERT_NONE
    come, go = ssl.MemoryBIO(), ssl.MemoryBIO()
    theirs = client.wrap_bio(come, go, server_hostname="a.test")
    said = b""
    done = False
    while not done:
        with contextlib.suppress(ssl.SSLWantReadError):
            theirs.do_handshake()
        ours.feed(go.read())
        done = ours.shake()
        said = ours.take()
        come.write(said)
    assert said == b""


def test_large_writes_are_whole(world: World) -> None:
    """INS-3: OpenSSL takes a record at a time; all of them are written, and arrive."""
    come, go = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = world.contexts.upstream(to("a.test"), ())
    theirs = world.server.wrap_bio(come, go, server_side=True)
    for _ in range(3):
        ours.shake()
        come.write(ours.take())
        with contextlib.suppress(ssl.SSLWantReadError):
            theirs.do_handshake()
        ours.feed(go.read())
    data = os.urandom(200_000)
    come.write(ours.write(data))
    got = b""
    while len(got) < len(data):
        got += theirs.read(65536)
    assert got == data


def test_old_versions_are_not_spoken(world: World) -> None:
    """INS-3: TLS 1.2 at least, on both sides."""
    world.client("a.test")
    contexts = [context for context, _ in world.contexts._leafs.values()] + [terminate.verifying("")]
    assert {context.minimum_version for context in contexts} == {ssl.TLSVersion.TLSv1_2}
    assert all(context.options & ssl.OP_NO_RENEGOTIATION for context in contexts)
    verifying = contexts[-1]
    assert verifying.verify_mode is ssl.CERT_REQUIRED
    assert verifying.check_hostname
    assert not verifying.hostname_checks_common_name
