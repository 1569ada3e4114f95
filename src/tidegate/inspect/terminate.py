"""TLS on memory: the task's side with leafs of its authority, the destination's verified (INS-1, INS-3; B107, B113).

Rules of the file:

* What the task is shown never depends on what the destination was: a certificate that does not verify is an error
  with a reason, never a leaf. Destinations are verified by name against the roots that were given, always.
* TLS 1.2 and newer on both sides, no renegotiation (it would let bytes stand before those that were judged).
* A session to a destination is resumed only for the same host, port and protocols, and for an hour at most: OpenSSL
  does not verify the certificate again. We never have a certificate of our own to show, so no identity is resumed.
* Contexts and sessions are few and bounded: one context to all destinations, shared by all tasks with the same roots
  and whatever they offer (to read a system's roots takes tens of milliseconds, in which nobody is served), one for each
  host and protocol to the task, renewed with its leaf, or when it remembers many clients of TLS 1.2. Sessions belong
  to one task.

Errors are ssl.SSLError, which is an OSError. It owns no socket; leafs get into OpenSSL through a file that is only
memory (memfd_create(2)).
"""

from __future__ import annotations

import contextlib
import os
import ssl
import threading
from collections import OrderedDict
from functools import lru_cache
from typing import TYPE_CHECKING

from tidegate.inspect.authority import NotCoveredError
from tidegate.model.reason import Reason

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tidegate.inspect.authority import Authority
    from tidegate.inspect.http2 import Http2
    from tidegate.model.decision import Decision
    from tidegate.model.destination import Destination
    from tidegate.model.host import Host
    from tidegate.model.limits import Limits
    from tidegate.model.seams import Guard, Line, Secrets

    _Kept = tuple[ssl.SSLSession, float, ssl.SSLContext]  # until when it is good, and whose it is

H1 = b"http/1.1"
H2 = b"h2"
SPOKEN = (H2, H1)
CACHED = 256  # contexts of leafs, and sessions: a few KiB each
VERIFYING = 16  # contexts to destinations: a MiB each
SESSION_SECONDS = 3600.0
REMEMBERED = 64  # sessions of clients of one host: OpenSSL itself keeps 20,480 of them for two hours
_FLAGS = ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
_OFFERING = threading.Lock()  # of a context that others may have too

_WANTS_CERTIFICATE = frozenset({"TLSV13_ALERT_CERTIFICATE_REQUIRED", "TLSV1_ALERT_CERTIFICATE_REQUIRED"})
_OF_ITS_TIME = frozenset({9, 10})  # X509_V_ERR_CERT_NOT_YET_VALID and _HAS_EXPIRED of x509_vfy.h
_REFUSED = "SSLV3_ALERT_HANDSHAKE_FAILURE"


class Tls:
    """See model.seams.Tls."""

    __slots__ = ("_again", "_ended", "_error", "_in", "_inner", "_keep", "_out", "_tls", "closed", "quiet")

    def __init__(
        self,
        make: Callable[[ssl.MemoryBIO, ssl.MemoryBIO], ssl.SSLObject],
        keep: Callable[[ssl.SSLSession], None] | None = None,
    ) -> None:
        self._in = ssl.MemoryBIO()
        self._out = ssl.MemoryBIO()
        self._tls = make(self._in, self._out)
        # What ssl.py's object calls for each record; it adds nothing but the call, and stands in where it has none.
        self._inner: Any = getattr(self._tls, "_sslobj", self._tls)
        self.quiet = False
        self._error: ssl.SSLError | None = None
        self.closed = False
        self._ended = False  # the network brings no more
        self._again = False  # the other side wanted another handshake
        self._keep = keep

    @property
    def pending(self) -> bool:
        """Whether something is to be sent."""
        return self._out.pending > 0

    @property
    def selected(self) -> bytes:
        """The protocol that was agreed on, b"" for none."""
        return (self._tls.selected_alpn_protocol() or "").encode("ascii")

    def feed(self, data: bytes) -> None:
        """Take bytes from the network."""
        self._in.write(data)

    def feed_end(self) -> None:
        """Take note that the network brings no more."""
        self._ended = True
        self._in.write_eof()

    def take(self) -> bytes:
        """Return what is to be sent."""
        return self._out.read()

    def shake(self) -> bool:
        """Go on with the handshake; see the seam."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLError as error:
            self._error = error
            raise
        return True

    @property
    def drained(self) -> bool:
        """Whether all that came is read; see the seam."""
        # OpenSSL takes whole records out of the memory, so what it holds is plain, or part of a record.
        return not (self._in.pending or self._ended or self.closed or self._inner.pending())

    def read_into(self, buffer: bytearray | memoryview, room: int, raw: bytes = b"") -> int | None:
        """Put plain bytes into a buffer; see the seam."""
        self.quiet = False
        come, inner = self._in, self._inner
        if raw:
            come.write(raw)
        if self.closed:
            return 0
        try:
            count: int = inner.read(room, buffer)
        except ssl.SSLWantReadError:
            if self._out.pending and self._tls.version() == "TLSv1.2":
                self._again = True  # nothing else makes us speak here than to refuse another handshake
            return None
        except ssl.SSLError as error:
            self._error = error
            raise
        if not count:
            self.closed = True  # by a close_notify: it ended all it wanted to say
        elif count < room:
            # With room to spare a record was read to its end (SSL_read(3)), and OpenSSL reads no further ahead than one
            # (SSL_CTX_set_read_ahead(3)): asking it what it holds costs as much as a record does.
            self.quiet = not (come.pending or self._out.pending or self._ended)
        return count

    def write(self, data: bytes | memoryview) -> bytes:
        """Return what is to be sent for plain bytes."""
        self._again = False  # it was wanted for what was said before
        tls = self._inner
        sent = tls.write(data)
        if sent < len(data):  # OpenSSL writes a record at a time (SSL_MODE_ENABLE_PARTIAL_WRITE)
            view = memoryview(data)
            while sent < len(view):
                sent += tls.write(view[sent:])
        return self._out.read()

    def close(self) -> bytes:
        """Return what announces our end."""
        with contextlib.suppress(OSError, ValueError):  # it waits for the other side's, or is broken already
            self._tls.unwrap()
        return self._out.read()

    def worked(self) -> None:
        """Let the next connection resume this one's session, if the destination gave one."""
        # Its tickets were read with a buffer of 16 KiB that OpenSSL keeps until something is written. To write nothing
        # gives it back, and sends nothing.
        with contextlib.suppress(OSError):
            self._tls.write(b"")
        if self._tls.session_reused:
            return  # it is kept already, and to take it out again costs as much as half a handshake
        session = self._tls.session
        if self._keep is not None and session is not None and session.has_ticket:
            self._keep(session)

    @property
    def alerted(self) -> bool:
        """Whether the other side ended it by an alert, or because it got no other handshake; see the seam."""
        return self._again or (self._error is not None and "_ALERT_" in (self._error.reason or ""))

    def why(self) -> tuple[Reason, str]:
        """Return why the last error came."""
        error = self._error
        if isinstance(error, ssl.SSLCertVerificationError):
            whose = ", by this machine's clock" if error.verify_code in _OF_ITS_TIME else ""  # which may be wrong
            return Reason.UPSTREAM_CERTIFICATE, f"{error.verify_message}{whose}"
        word = "" if error is None else error.reason or ""
        if word in _WANTS_CERTIFICATE:
            return Reason.CLIENT_CERTIFICATE, ""
        if word == _REFUSED or (self._again and "_ALERT_" not in word):
            return (
                Reason.UPSTREAM_TLS,
                "it refused the handshake; it may want a client certificate, see 'inspect: never'",
            )
        return Reason.UPSTREAM_TLS, word.replace("_", " ").lower() or "it ended before the handshake did"


@lru_cache(maxsize=VERIFYING)
def verifying(roots: str) -> ssl.SSLContext:
    """Return the context to destinations: it verifies against the roots, PEM, and checks the host's name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.hostname_checks_common_name = False  # RFC 9525 section 2: a subject is no name of a host
    context.options |= _FLAGS
    if roots:
        context.load_verify_locations(cadata=roots)
    return context


def _reaching(
    context: ssl.SSLContext, host: str, alpn: tuple[bytes, ...], session: ssl.SSLSession | None
) -> Callable[[ssl.MemoryBIO, ssl.MemoryBIO], ssl.SSLObject]:
    offered = [name.decode("ascii") for name in alpn]

    def make(come: ssl.MemoryBIO, go: ssl.MemoryBIO) -> ssl.SSLObject:
        # A connection takes the offer of its context when it is made (SSL_new(3)), and has a copy from then on.
        with _OFFERING:
            context.set_alpn_protocols(offered)
            return context.wrap_bio(come, go, server_hostname=host, session=session)

    return make


class Contexts:
    """The ends of TLS for one task: see model.seams.Inspector. `roots` are PEM, `wall` gives Unix time in seconds.

    `guard` looks at calls to model services.
    """

    __slots__ = ("_authority", "_leafs", "_roots", "_sessions", "_wall", "guard")

    def __init__(self, authority: Authority, roots: str, wall: Callable[[], float]) -> None:
        self.guard: Guard | None = None
        self._authority = authority
        self._roots = roots
        self._wall = wall
        self._leafs: OrderedDict[tuple[str, bytes], tuple[ssl.SSLContext, float]] = OrderedDict()
        self._sessions: OrderedDict[tuple[str, int, bytes], _Kept] = OrderedDict()

    def covers(self, host: Host) -> bool:
        """Whether the authority is for this host."""
        return self._authority.covers(host)

    def offers(self, alpn: tuple[bytes, ...]) -> tuple[bytes, ...] | None:
        """Return which of a client's protocols are offered on; None where none of them is spoken here."""
        offered = tuple(dict.fromkeys(name for name in alpn if name in SPOKEN))  # once each: contexts are few
        return None if alpn and not offered else offered

    def upstream(self, destination: Destination, alpn: tuple[bytes, ...]) -> Tls:
        """Return the client's end of a connection to a destination."""
        context = verifying(self._roots)
        key = destination.host.text, destination.port, b",".join(alpn)
        known = self._sessions.get(key)
        # A session is its context's: `verifying` makes another one where more lists of roots are in use than it keeps.
        resumed = known is not None and known[1] > self._wall() and known[2] is context
        session = known[0] if known is not None and resumed else None
        return Tls(
            _reaching(context, key[0], alpn, session),
            lambda session: self._keep_session(key, session, context),
        )

    def _keep_session(self, key: tuple[str, int, bytes], session: ssl.SSLSession, context: ssl.SSLContext) -> None:
        known = self._sessions.pop(key, None)
        # A resumed session does not become younger by that: what it rests on was verified when it was first made.
        old = known is not None and known[1] > self._wall() and known[2] is context
        until = known[1] if known is not None and old else self._wall() + SESSION_SECONDS
        while len(self._sessions) >= CACHED:
            self._sessions.popitem(last=False)
        self._sessions[key] = session, until, context

    def client(self, destination: Destination, alpn: bytes) -> Tls:
        """Return the server's end of a connection of the task."""
        key = destination.host.text, alpn
        known = self._leafs.get(key)
        if known is not None and self._wall() < known[1] and known[0].session_stats()["number"] <= REMEMBERED:
            self._leafs.move_to_end(key)
            context = known[0]
        else:
            context, renew_at = self._showing(destination.host, alpn)
            while len(self._leafs) >= CACHED:
                self._leafs.popitem(last=False)
            self._leafs[key] = context, renew_at
        return Tls(lambda come, go: context.wrap_bio(come, go, server_side=True))

    def streams(
        self,
        decision: Decision,
        limits: Limits,
        open_line: Callable[[str], Line],
        failure: tuple[Reason, str] | None,
        secrets: Secrets | None = None,
    ) -> Http2:
        """Return what reads the HTTP/2 of one connection."""
        from tidegate.inspect.http2 import Http2

        return Http2(decision, limits, open_line, failure, self.guard, secrets)

    def _showing(self, host: Host, alpn: bytes) -> tuple[ssl.SSLContext, float]:
        try:
            leaf = self._authority.mint(host)
        except NotCoveredError:
            raise ssl.SSLError(f"no certificate for {host.text}") from None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # A client that ends its direction without a close_notify still gets its answer; a request that is cut short
        # shows by its framing. What a destination says has to be whole.
        context.options |= _FLAGS | ssl.OP_IGNORE_UNEXPECTED_EOF
        # No session is resumed on the task's side in TLS 1.3: it would spare the gate nothing but one signature, and
        # telling of it costs every connection a packet. In TLS 1.2 a ticket costs none. OpenSSL resumes them by this
        # context alone, so for this task, this host and this protocol; those without a ticket it keeps (REMEMBERED).
        context.num_tickets = 0
        memory = os.memfd_create("leaf", os.MFD_CLOEXEC)
        try:
            os.write(memory, leaf.pem)
            context.load_cert_chain(f"/proc/self/fd/{memory}")
        finally:
            os.close(memory)
        if alpn:
            context.set_alpn_protocols([alpn.decode("ascii")])
        return context, leaf.renew_at
