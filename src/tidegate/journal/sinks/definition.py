"""What a person says of a sink, checked once: its address, which says its kind, and what it wants (JRN-6).

    https://HOST/PATH                        webhook, signed with the key
    elasticsearch+https://HOST:9200/INDEX    also opensearch+
    otlp+https://HOST:4318[/PATH]            /v1/logs where there is no path
    jira+https://SITE.atlassian.net          or a server of one's own, with its path
    syslog+tls://HOST[:6514]  syslog+tcp://HOST[:601]  syslog+udp://HOST[:514]  syslog:///dev/log

Plain `http`, `tcp` and `udp` are for this machine's loopback, unless `clear` is said. A key with a colon is user and
password (Basic); any other is a token: `ApiKey` for Elasticsearch, `Bearer` elsewhere, or the value of `key_header`.
`cert` is a client's certificate, `proxy` an HTTP proxy. Keys are not part of it (its own, the certificate's, and the
proxy's user and password): they lie among the keys, and are never shown.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from tidegate.journal.sinks.client_tls import tls_context
from tidegate.journal.sinks.elasticsearch import ElasticsearchSink
from tidegate.journal.sinks.jira import ENDED, JiraSink
from tidegate.journal.sinks.otlp import OtlpSink
from tidegate.journal.sinks.proxy import proxy_of
from tidegate.journal.sinks.record import Wanted, wanted
from tidegate.journal.sinks.signature import LONGEST_KEY, SHORTEST_KEY
from tidegate.journal.sinks.syslog_wire import Datagrams, Stream, SyslogSink
from tidegate.journal.sinks.target import LOOPBACK, Target
from tidegate.journal.sinks.webhook import WebhookSink
from tidegate.model.errors import StartError, UsageError
from tidegate.model.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.journal.sinks.sink import Sink

NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
LONGEST_URL: Final = 2000
LONGEST_CA: Final = 1 << 16
WEBHOOK, ELASTICSEARCH, OTLP, JIRA, SYSLOG = "webhook", "elasticsearch", "otlp", "jira", "syslog"
_WHY = "what a task did is nobody else's"
_HEADER = re.compile(r"[A-Za-z0-9-]{1,60}")
_NEWER = ("cert", "proxy")  # what an older version did not keep
_SYSLOG_PORTS = {"tls": 6514, "tcp": 601, "udp": 514}  # RFC 5425, 6587 and 5426
_ADDRESSES = "https://HOST/PATH, elasticsearch+https://, otlp+https://, jira+https:// or syslog+tls://HOST"
_OWN_HEADERS = frozenset(("host", "content-length", "content-type", "transfer-encoding", "connection", "user-agent"))


class Definition(Value):
    """See the head of the file. `ca` are certificates in PEM that verify it in place of the system's; so is `cert`."""

    name: str
    url: str
    kinds: tuple[str, ...] = ()
    least: str = "info"
    clear: bool = False
    ca: str = ""
    key_header: str = ""
    cert: str = ""
    proxy: str = ""

    @property
    def kind(self) -> str:
        """Return what it is."""
        scheme = self.url.partition("://")[0]
        kind = scheme.partition("+")[0] if "+" in scheme or scheme == SYSLOG else WEBHOOK
        return ELASTICSEARCH if kind == "opensearch" else kind

    @property
    def wanted(self) -> Wanted:
        """Return which records it gets."""
        return Wanted((ENDED,)) if self.kind == JIRA else Wanted(self.kinds, self.least)

    @property
    def host(self) -> str:
        """Return where it leads, as far as everybody may see: the path may be a secret."""
        parts = urlsplit(self.url)
        if self.kind == SYSLOG and not parts.hostname:
            return parts.path
        host = parts.hostname or ""
        return f"[{host}]" if ":" in host else host


class Keys(Value):
    """What lies among the keys, None where there is none.

    `own` is the sink's, `client` the certificate's (PEM), `proxy` the proxy's user and password.
    """

    own: bytes | None = None
    client: bytes | None = None
    proxy: bytes | None = None


class World(Value):
    """What sinks need of the server: where the log lies, what this machine is called, and Unix time in seconds."""

    folder: str
    hostname: str
    wall: Callable[[], float]


def definition_of(fields: dict[str, Any]) -> Definition:
    """Return what was kept as `plain` made it.

    Raises:
        KeyError, TypeError: when it is nothing of the kind.
    """
    given: dict[str, Any] = {name: fields[name] for name in Definition._fields if name in fields or name not in _NEWER}
    return Definition(**(given | {"kinds": tuple(given["kinds"])}))


def plain(definition: Definition) -> dict[str, Any]:
    """Return it as it is kept."""
    return {name: getattr(definition, name) for name in Definition._fields}


def check(definition: Definition, keys: Keys) -> None:
    """See whether it can be, with these keys.

    Raises:
        UsageError: when not.
    """
    key = keys.own
    if not NAME.fullmatch(definition.name):
        raise UsageError(f"a sink cannot be called {ascii(definition.name)[:60]}", fix="small letters, digits and -")
    if len(definition.url) > LONGEST_URL or not definition.url.isascii() or not definition.url.isprintable():
        raise UsageError("the address of a sink has characters that it cannot have", fix="write them as %XX")
    if definition.kind == WEBHOOK and not definition.url.lower().startswith(("https://", "http://")):
        raise UsageError("the address says no kind of sink that there is", fix=_ADDRESSES)
    wanted(list(definition.kinds), definition.least)
    if definition.kind == JIRA and (definition.kinds or definition.least != "info"):
        raise UsageError("an issue is told of ends of tasks only", fix="leave types and min out")
    if definition.kind == WEBHOOK and (key is None or not SHORTEST_KEY <= len(key) <= LONGEST_KEY):
        raise UsageError(
            f"a webhook needs a key of {SHORTEST_KEY} to {LONGEST_KEY} bytes, which signs what it is sent",
            fix="openssl rand -hex 32 >FILE, and --key-file FILE",
        )
    if key is not None and not _can_be_sent(key):
        raise UsageError("the key has characters that a header cannot have", fix="one line of printable ASCII")
    header = definition.key_header
    if header and (not _HEADER.fullmatch(header) or header.lower() in _OWN_HEADERS):
        raise UsageError(f"{ascii(header)[:60]} is no header for a key", fix="such as x-api-key")
    if header and (key is None or definition.kind in (WEBHOOK, SYSLOG)):
        raise UsageError("key_header is for the key of a sink that takes one in a header", fix="leave it out")
    if len(definition.ca) > LONGEST_CA:
        raise UsageError(f"the CA file is longer than {LONGEST_CA} bytes", fix="only what verifies this receiver")
    if keys.proxy is not None and not definition.proxy:
        raise UsageError("there is no proxy that the proxy's key is for", fix="--proxy http://HOST:PORT")
    try:
        make(definition, keys, World("", "", lambda: 0.0)).close()
    except StartError as error:
        raise UsageError(error.what, fix=error.fix) from None


def make(definition: Definition, keys: Keys, world: World) -> Sink:
    """Return the sink.

    Raises:
        StartError: for an address that cannot be used.
    """
    kind = definition.kind
    key = keys.own or b""
    if kind == SYSLOG:
        return SyslogSink(_wire(definition, keys), world.hostname)
    if kind not in (WEBHOOK, ELASTICSEARCH, OTLP, JIRA):
        raise StartError(f"{ascii(kind)[:40]} is no kind of sink", fix=_ADDRESSES)
    url = definition.url if kind == WEBHOOK else definition.url.partition("+")[2]
    target = Target(
        url, key, name="the sink's address", why=_WHY, clear=definition.clear, ca=definition.ca, cert=definition.cert,
        cert_key=keys.client or b"", proxy=proxy_of(definition.proxy, keys.proxy or b"") if definition.proxy else None,
    )  # fmt: skip
    if kind == WEBHOOK:
        return WebhookSink(target, wall=world.wall)
    headers = _headers(definition, key)
    if kind == ELASTICSEARCH:
        if target.path == "/" or "?" in target.path:
            raise StartError("an index is needed", fix="elasticsearch+https://HOST:9200/INDEX")
        return ElasticsearchSink(target, headers)
    if "?" in target.path:
        raise StartError("the address has a query", fix="leave it out")
    if kind == OTLP:
        return OtlpSink(target, headers, {"service.name": "tidegate", "host.name": world.hostname})
    return JiraSink(target, headers, world.folder)


def _headers(definition: Definition, key: bytes) -> dict[str, str]:
    if not key:
        return {}
    if definition.key_header:
        return {definition.key_header: key.decode("ascii")}
    if b":" in key:
        return {"Authorization": f"Basic {base64.b64encode(key).decode('ascii')}"}
    scheme = "ApiKey" if definition.url.startswith("elasticsearch+") else "Bearer"
    return {"Authorization": f"{scheme} {key.decode('ascii')}"}


def _can_be_sent(key: bytes) -> bool:
    return all(0x20 <= byte < 0x7F for byte in key)


def _wire(definition: Definition, keys: Keys) -> Datagrams | Stream:
    try:
        parts = urlsplit(definition.url)
        port, host = parts.port, parts.hostname or ""
    except ValueError:
        raise StartError("the address of the sink is not a URL", fix=_ADDRESSES) from None
    way = parts.scheme.partition("+")[2]
    if definition.proxy:
        raise StartError("syslog goes through no proxy: only sinks over HTTP do", fix="leave --proxy out")
    if (definition.cert or keys.client) and way != "tls":
        raise StartError("the sink's address: a certificate is shown under TLS only", fix="syslog+tls://HOST")
    if parts.scheme in ("syslog", "syslog+unix"):
        if host or not parts.path.startswith("/"):
            raise StartError("syslog on this machine is a path", fix="syslog:///dev/log")
        return Datagrams(path=parts.path)
    plain_place = host and "@" not in parts.netloc and not parts.path.strip("/")
    if way not in _SYSLOG_PORTS or not plain_place or parts.query or parts.fragment:
        raise StartError("the address of the sink is no plain address of syslog", fix=_ADDRESSES)
    if way != "tls" and host not in LOOPBACK and not definition.clear:
        raise StartError(
            f"the sink's address: {_WHY}, and {way} is read by others", fix="syslog+tls://HOST, or --clear"
        )
    port = port or _SYSLOG_PORTS[way]
    if way == "udp":
        return Datagrams(host=host, port=port)
    context = tls_context(definition.ca, definition.cert, keys.client or b"") if way == "tls" else None
    return Stream(host, port, context)
