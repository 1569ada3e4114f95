"""tidegate.journal.sinks.target against real servers on loopback: addresses, TLS, bounds in time and bytes."""

from __future__ import annotations

import http.client
import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.sinks.proxies import company_proxy
from tests.sinks.rig import Authority, authority
from tidegate.journal.sinks import target as module
from tidegate.journal.sinks.proxy import proxy_of
from tidegate.journal.sinks.target import Target
from tidegate.model.errors import StartError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.lab.origins import Origin

_LEFT = r"certificate required|unknown ca|[Rr]eset|EOF|closed|[Pp]ipe"  # who refuses a client leaves at once


@pytest.fixture
def serve() -> Iterator[Callable[..., int]]:
    """Give a server that answers each connection with these bytes, under TLS where it is told so."""
    listening: list[socket.socket] = []

    def start(*answers: bytes, tls: bool = False, clients: bool = False, drip: float = 0, hold: bool = False) -> int:
        listener = socket.create_server(("127.0.0.1", 0))
        listening.append(listener)
        context = authority().strict if clients else authority().context

        def answer() -> None:
            for text in answers:
                try:
                    raw, _ = listener.accept()
                    with raw, context.wrap_socket(raw, server_side=True) if tls else raw as one:
                        one.recv(65536)
                        if not drip:
                            one.sendall(text)
                            if hold:
                                one.recv(65536)
                            continue
                        over = threading.Event()
                        for byte in text:
                            one.send(bytes((byte,)))
                            over.wait(drip)
                except OSError:
                    continue

        threading.Thread(target=answer, daemon=True).start()
        return int(listener.getsockname()[1])

    yield start
    for one in listening:
        one.close()


def reply(*headers: str, body: str = "") -> bytes:
    """Return the bytes of an answer."""
    lines = ["HTTP/1.1 503 No", f"Content-Length: {len(body)}", *headers, "", body]
    return "\r\n".join(lines).encode()


@pytest.mark.parametrize(
    ("header", "wait"),
    [
        (("Retry-After: 7",), 7.0),
        (("Retry-After: 999999999",), 3600.0),
        (("Date: Sun, 29 Nov 2026 00:00:00 GMT", "Retry-After: Sun, 29 Nov 2026 00:01:30 GMT"), 90.0),
        (("Date: Sun, 29 Nov 2026 00:00:00 GMT", "Retry-After: Sun, 29 Nov 2020 00:01:30 GMT"), 0.0),
        (("Retry-After: Sun, 29 Nov 2026 00:01:30 GMT",), None),
        (("Retry-After: -1",), None),
        (("Retry-After: \u0661",), None),
        ((), None),
    ],
)
def test_retry_after(serve: Callable[..., int], header: tuple[str, ...], wait: float | None) -> None:
    """JRN-6: seconds, or a date that counts from the answer's own; bounded, and nothing where it is neither."""
    port = serve(reply(*header))
    assert Target(f"http://127.0.0.1:{port}/", b"").post(b"", {}).wait == wait


def test_an_answer_is_bounded(serve: Callable[..., int]) -> None:
    """JRN-6: of a body only what was asked for is kept, and nothing where nothing was."""
    text = reply(body="x" * 5000)
    target = Target(f"http://127.0.0.1:{serve(text, text)}/", b"")
    assert target.post(b"", {}, keep=10).body == b"x" * 10
    assert target.post(b"", {}).body == b""


def test_a_receiver_that_drips_is_cut_off(serve: Callable[..., int], monkeypatch: pytest.MonkeyPatch) -> None:
    """JRN-6: each byte comes in time, and all of them would take for ever: the whole has an end."""
    monkeypatch.setattr(module, "WHOLE_SECONDS", 0.5)
    port = serve(b"HTTP/1.1 200 OK\r\nX-Slow: " + b"y" * 5000, drip=0.05)
    with pytest.raises((OSError, http.client.HTTPException)):
        Target(f"http://127.0.0.1:{port}/", b"").post(b"", {})


def test_a_head_that_never_ends_is_no_answer(serve: Callable[..., int], monkeypatch: pytest.MonkeyPatch) -> None:
    """JRN-6: a status alone is not enough: what was cut off in the middle of its head has not been answered."""
    monkeypatch.setattr(module, "WHOLE_SECONDS", 0.3)
    port = serve(b"HTTP/1.1 200 OK\r\n", hold=True)
    with pytest.raises(TimeoutError, match="did not end"):
        Target(f"http://127.0.0.1:{port}/", b"").post(b"", {})


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 2OO ", b"HTTP/9.9 200 "], ids=["echo", "status", "version"])
def test_an_answer_that_is_not_http_is_not_quoted(serve: Callable[..., int], answer: bytes) -> None:
    """JRN-6: it may repeat what it was sent, and everybody is shown what a receiver says: the path may be a secret."""
    asked = b"POST /s3cret HTTP/1.1\r\n\r\n"
    target = Target(f"http://127.0.0.1:{serve(answer + asked)}/s3cret", b"")
    with pytest.raises(OSError, match="not HTTP") as raised:
        target.post(b"", {})
    assert raised.value.strerror == "what it answers is not HTTP"
    for url in ("https://h.test/s3cret", "http://h.test/s3cret"):
        place = f"127.0.0.1:{serve(answer + asked)}"
        with pytest.raises(OSError, match=r"not HTTP|through the proxy") as raised:
            Target(url, b"", clear=True, proxy=proxy_of(f"http://{place}", b"me:s3cret")).post(b"", {})
        assert "s3cret" not in str(raised.value)


def test_a_receiver_that_leaves_without_a_word_is_said_so(serve: Callable[..., int]) -> None:
    """JRN-6: the neighbour: that is no answer at all, and says what it is."""
    with pytest.raises(http.client.RemoteDisconnected, match="without response"):
        Target(f"http://127.0.0.1:{serve(b'')}/", b"").post(b"", {})


def test_abort_wakes_whoever_waits(serve: Callable[..., int]) -> None:
    """JRN-6: a server that stops does not wait for a receiver that says nothing."""
    port = serve(b"x" * 50, drip=5)
    target = Target(f"http://127.0.0.1:{port}/", b"")
    failed = threading.Event()

    def post() -> None:
        try:
            target.post(b"", {})
        except (OSError, http.client.HTTPException):
            failed.set()

    thread = threading.Thread(target=post)
    thread.start()
    while not failed.wait(0.05):
        target.abort()
    thread.join()


def test_certificates_are_verified(serve: Callable[..., int]) -> None:
    """JRN-6: an authority that is not known, and a certificate for another name, is refused; its own is taken."""
    answer = reply()
    port = serve(answer, answer, answer, tls=True)
    with pytest.raises(OSError, match="certificate verify failed"):
        Target(f"https://localhost:{port}/", b"").post(b"", {})
    with pytest.raises(OSError, match=r"certificate verify failed|mismatch"):
        Target(f"https://127.0.0.1:{port}/", b"", ca=authority().pem).post(b"", {})
    assert Target(f"https://localhost:{port}/", b"", ca=authority().pem).post(b"", {}).status == 503


@pytest.mark.parametrize(
    "url",
    [
        "http://h.test/", "ftp://h.test/", "https://u:p@h.test/", "https:///x", "https://h.test:99999/",
        "https://h.test/#x", "https://h.test/a b", "https://h.test/\r\nX: y", "https://h.test/ü",
    ],
)  # fmt: skip
def test_addresses_that_cannot_be(url: str) -> None:
    """JRN-6: clear text to elsewhere, credentials in the address, odd characters, and what is no URL."""
    with pytest.raises(StartError):
        Target(url, b"")


@pytest.mark.parametrize("url", ["https://me:s3cret@h.test/", "https://:s3cret@h.test/", "https://me:s3cret@[::1/"])
def test_a_password_in_an_address_is_not_repeated(url: str) -> None:
    """JRN-6: it is refused, and what says so is no place for it."""
    with pytest.raises(StartError, match=r"in it|not a URL") as raised:
        Target(url, b"")
    assert "s3cret" not in str(raised.value)


def test_clear_text_where_it_is_allowed() -> None:
    """JRN-6: http to loopback, or where the operator says so; a CA file has to hold certificates."""
    assert Target("http://[::1]:9/x?y", b"").path == "/x?y"
    assert Target("http://h.test/", b"", clear=True).host == "h.test"
    with pytest.raises(StartError, match="PEM"):
        Target("https://h.test/", b"", ca="nothing")


def through(proxy: Origin, key: bytes = b"") -> dict[str, Any]:
    """Return what leads a target through a proxy."""
    return {"proxy": proxy_of(f"http://{proxy.name}", key)}


def test_a_proxy_carries_tls_and_reads_nothing(serve: Callable[..., int]) -> None:
    """JRN-6: a tunnel, with the proxy's key for the proxy alone; the receiver is verified as without."""
    port = serve(reply(), reply(), tls=True)
    ca = authority().pem
    with company_proxy(user="me", password="s3cret") as proxy:
        target = Target(f"https://localhost:{port}/x", b"", ca=ca, **through(proxy, b"me:s3cret"))
        assert target.post(b"", {"X-Key": "own"}).status == 503
        (head,) = proxy.heads
        assert head.startswith(b"CONNECT localhost:%d HTTP/1." % port)
        assert b"Host: localhost:%d\r\n" % port in head
        assert b"X-Key" not in head
        with pytest.raises(
            OSError, match=rf"^\[Errno \d+\] through the proxy {proxy.name}: .*certificate verify failed"
        ):
            Target(f"https://localhost:{port}/x", b"", **through(proxy, b"me:s3cret")).post(b"", {})


def test_plain_http_through_a_proxy_is_asked_for_by_its_whole_url(serve: Callable[..., int]) -> None:
    """JRN-6: only where clear text is said to be right, since it leaves this machine with the proxy."""
    port = serve(reply())
    with company_proxy() as proxy:
        url = f"http://localhost:{port}/x?y"
        with pytest.raises(StartError, match="read by others"):
            Target(url, b"", **through(proxy))
        assert Target(url, b"", clear=True, **through(proxy)).post(b"", {}).status == 503
        (head,) = proxy.heads
    assert head.startswith(b"POST http://localhost:%d/x?y HTTP/1.1\r\nHost: localhost:%d\r\n" % (port, port))


def test_a_proxy_that_says_no_is_named_and_quoted_no_further() -> None:
    """JRN-6: what stands beside its status may be what it was sent; nobody there is said with its place."""
    with company_proxy(status="403 bWU6czNjcmV0") as proxy:
        with pytest.raises(OSError, match="Tunnel connection failed") as raised:
            Target("https://h.test/", b"", **through(proxy, b"me:s3cret")).post(b"", {})
        assert raised.value.strerror == f"through the proxy {proxy.name}: Tunnel connection failed: 403"
    with pytest.raises(StartError, match="has a name"):
        Target("https://[2001:db8::1]/", b"", **through(proxy))
    with socket.socket() as bound:  # and listens not: nobody else has the port
        bound.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{bound.getsockname()[1]}"
        with pytest.raises(OSError, match=f"through the proxy {place}: Connection refused"):
            Target("https://h.test/", b"", proxy=proxy_of(f"http://{place}")).post(b"", {})


def test_a_certificate_is_shown_under_tls(serve: Callable[..., int]) -> None:
    """JRN-6: a receiver that wants one gets it, and refuses who has none or one that it does not know."""
    port = serve(*[reply()] * 3, tls=True, clients=True)
    ca, client = authority().pem, authority().client
    assert Target(f"https://localhost:{port}/", b"", ca=ca, **client).post(b"", {}).status == 503
    with pytest.raises(OSError, match=_LEFT):
        Target(f"https://localhost:{port}/", b"", ca=ca).post(b"", {})
    with pytest.raises(OSError, match=_LEFT):
        Target(f"https://localhost:{port}/", b"", ca=ca, **Authority().client).post(b"", {})
    with pytest.raises(StartError, match="under TLS only"):
        Target("http://localhost/", b"", **client)
