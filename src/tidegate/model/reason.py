"""Why a connection was allowed or refused: a closed list, each with all its renderings.

The 403 text, the journal line, the question card, `explain` and the metric name all come from here, so
nothing else in the house invents a reason. The words are stable: people and machines grep for them.

`proxy_error` is the error type of RFC 9209 section 2.3 that says the same to a machine. `status` is the HTTP
status a client gets; 0 means that the client gets none (its connection is simply closed, or all is well).
"""

from __future__ import annotations

from tidegate.model.closed import Closed


class Reason(Closed):
    """One reason. The value is (word, sentence, HTTP status, Proxy-Status error type)."""

    # Verdicts of the policy.
    ALLOWED = ("allowed", "a rule allows it", 0, "")
    ALLOWED_BY_DEFAULT = ("allowed-by-default", "the profile allows and records everything else", 0, "")
    NO_RULE = ("no-rule", "no rule allows it", 403, "http_request_denied")
    PORT_NOT_ALLOWED = (
        "port-not-allowed",
        "a rule names this host, but with another port",
        403,
        "http_request_denied",
    )
    DENY_RULE = ("deny-rule", "a rule denies it", 403, "http_request_denied")
    PHASE_CLOSED = ("phase-closed", "this phase of the task has no network", 403, "http_request_denied")
    NEVER_ALLOWED = (
        "never-allowed",
        "cloud metadata is never reached, whatever a policy says",
        403,
        "http_request_denied",
    )
    NO_APPROVER = (
        "no-approver",
        "would wait for approval; the command line asks no one",
        403,
        "http_request_denied",
    )
    WAITING = ("waiting", "a person is asked", 0, "")

    # Answers of a person (SPEC section 5).
    ALLOWED_BY_PERSON = ("allowed-by-person", "a person allowed it", 0, "")
    DENIED_BY_PERSON = (
        "denied-by-person",
        "a person refused it; go on without it",
        403,
        "http_request_denied",
    )
    NOBODY_THERE = (
        "nobody-there",
        "would wait for approval; nobody is there to answer",
        403,
        "http_request_denied",
    )
    NOT_ANSWERED = (
        "not-answered",
        "nobody answered in time; try again once somebody has answered, or go on without it",
        403,
        "http_request_denied",
    )
    TOO_MANY_QUESTIONS = (
        "too-many-questions",
        "the task has as many open questions as it may; try again when some are answered",
        403,
        "http_request_denied",
    )
    NOT_SAVED = (
        "not-saved",
        "a person's answer cannot be saved, and so does not count",
        403,
        "http_request_denied",
    )
    GRANT_ENDED = (
        "grant-ended",
        "what a person allowed is used up or over",
        403,
        "http_request_denied",
    )
    PHASE_CHANGED = (
        "phase-changed",
        "the task moved to another phase while a person was asked; try again",
        403,
        "http_request_denied",
    )
    METHOD_NOT_ALLOWED = (
        "method-not-allowed",
        "the rule allows other methods or paths only",
        403,
        "http_request_denied",
    )

    REGISTRY_READ_ONLY = (
        "registry-read-only",
        "package registries are read-only here; a rule of your own for this host, or 'registries: tunnel', lifts that",
        403,
        "http_request_denied",
    )
    REGISTRY_NOT_READ = (
        "registry-not-read",
        "registries are read-only, and this task cannot be read inside TLS; 'registries: tunnel' lets them pass unread",
        403,
        "http_request_denied",
    )
    GIT_READ_ONLY = (
        "git-read-only",
        "a push is refused: git may only fetch here, and over HTTPS ('git: write' in the policy lets it push)",
        403,
        "http_request_denied",
    )

    SECRET_MISDIRECTED = (
        "secret-misdirected",
        "the stand-in of a secret was met where it does not belong",
        403,
        "http_request_denied",
    )

    NO_TOOLS = (
        "no-tools",
        "this command was given no tools; whoever begins it names them ('tidegate tools' lists what there is)",
        403,
        "http_request_denied",
    )
    REDIRECT_REFUSED = (
        "redirect-refused",
        "the answer leads elsewhere, and this tool follows no redirects (apply_task_hosts)",
        403,
        "http_request_denied",
    )

    # What an agent asks of its model service (INS-8).
    MODEL_GUARD = (
        "model-guard",
        "the model service would reach out for the task, or it is no call of a coding agent",
        403,
        "http_request_denied",
    )
    MODEL_BODY = (
        "model-body",
        "the call is larger than what is looked at",
        413,
        "http_request_denied",
    )
    MODEL_SOCKET = (
        "model-socket",
        "no WebSocket is made to a model service; its calls pass over HTTP",
        426,
        "http_request_denied",
    )

    # Addresses (SPEC section 2).
    LITERAL_NOT_NAMED = (
        "literal-not-named",
        "an address needs a rule that names it exactly",
        403,
        "http_request_denied",
    )
    PRIVATE_ADDRESS = (
        "private-address",
        "it leads to a private address, which needs a written rule for exactly this host",
        403,
        "destination_ip_prohibited",
    )
    OWN_ADDRESS = (
        "own-address",
        "it leads to an address of this machine, which needs a written rule for exactly this host and port",
        403,
        "destination_ip_prohibited",
    )
    NEVER_ADDRESS = (
        "never-address",
        "it leads to an address that is never reached: link-local, metadata, multicast or unspecified",
        403,
        "destination_ip_prohibited",
    )
    PROTECTED_PORT = (
        "protected-port",
        "it leads to a port of this machine that is protected",
        403,
        "destination_ip_prohibited",
    )
    NO_ADDRESS = ("no-address", "the name has no address", 502, "dns_error")

    # Capture (HLD-6).
    NOT_ISSUED = (
        "address-not-issued",
        "this address stands for no name that the task looked up",
        403,
        "http_request_denied",
    )
    TOO_MANY_NAMES = ("too-many-names", "the task has looked up as many names as it may", 0, "")
    NOT_TCP = ("not-tcp", "only TCP passes through the gate", 0, "")
    AROUND_GATE = ("around-the-gate", "only what goes through the gate gets out", 0, "")
    DNS_AROUND = ("dns-around-the-gate", "names are looked up by the gate; a proxy needs no DNS", 0, "")
    UNKNOWN_PEER = ("unknown-peer", "the kernel does not say whose connection it is", 0, "")
    FOREIGN_PEER = ("foreign-peer", "it comes from outside of the task that this gate belongs to", 0, "")
    BAD_DNS = ("bad-dns", "the DNS query is malformed", 0, "")

    # Requests that are not well formed.
    BAD_REQUEST = ("bad-request", "the request is malformed", 400, "http_request_error")
    BAD_HOST = ("bad-host", "the host is malformed", 400, "http_request_error")
    BAD_PORT = ("bad-port", "the port is missing or malformed", 400, "http_request_error")
    REQUEST_FORM = (
        "request-form",
        "this is a proxy: a request needs an absolute http:// target, or CONNECT host:port",
        400,
        "http_request_error",
    )
    HOST_MISMATCH = (
        "host-mismatch",
        "the Host header names another host than the request line",
        400,
        "http_request_error",
    )
    BAD_FRAMING = ("bad-framing", "the length of the message is ambiguous", 400, "http_request_error")
    BAD_METHOD = ("bad-method", "this method is not forwarded", 405, "http_request_error")
    BAD_VERSION = ("bad-version", "only HTTP/1.0 and HTTP/1.1 are spoken here", 505, "http_request_error")
    HEADERS_TOO_LARGE = ("headers-too-large", "the headers are too large", 431, "http_request_error")
    TARGET_TOO_LONG = ("target-too-long", "the request target is too long", 414, "http_request_error")
    HEADER_TIMEOUT = ("header-timeout", "the request took too long to arrive", 408, "http_request_error")
    BAD_SOCKS = ("bad-socks", "the SOCKS5 request is malformed or asks for what is not offered", 0, "")

    # Inside TLS, where it is read (SPEC section 6).
    MISDIRECTED = (
        "misdirected",
        "the request inside TLS names another host than its connection",
        421,
        "http_request_error",
    )
    NOT_INSPECTABLE = (
        "not-inspectable",
        "this host is read inside TLS, and only TLS with HTTP inside passes there",
        403,
        "http_request_denied",
    )

    # Inside tunnels (GAT-9).
    SNI_MISMATCH = (
        "sni-mismatch",
        "the TLS client names another host than its CONNECT",
        403,
        "http_request_denied",
    )
    TUNNEL_HOST_MISMATCH = (
        "tunnel-host-mismatch",
        "the Host header inside the tunnel names another host than its CONNECT",
        403,
        "http_request_denied",
    )
    TLS_REQUIRED = (
        "tls-required",
        "the policy says tls: strict and this is not TLS",
        403,
        "http_request_denied",
    )
    SNI_REQUIRED = (
        "sni-required",
        "the policy says tls: strict and the TLS client names no host",
        403,
        "http_request_denied",
    )
    BAD_TLS = ("bad-tls", "the TLS ClientHello is malformed", 400, "http_request_error")

    # The way out.
    UPSTREAM_NXDOMAIN = ("upstream-dns-nxdomain", "the name does not exist", 502, "dns_error")
    UPSTREAM_DNS_FAILED = ("upstream-dns-servfail", "the resolver failed", 502, "dns_error")
    UPSTREAM_DNS_TIMEOUT = ("upstream-dns-timeout", "the resolver did not answer in time", 502, "dns_timeout")
    UPSTREAM_REFUSED = (
        "upstream-connect-refused",
        "the destination refused the connection",
        502,
        "connection_refused",
    )
    UPSTREAM_UNREACHABLE = (
        "upstream-connect-unreachable",
        "the destination cannot be reached",
        502,
        "destination_ip_unroutable",
    )
    UPSTREAM_TIMEOUT = (
        "upstream-connect-timeout",
        "the destination did not answer in time",
        504,
        "connection_timeout",
    )
    UPSTREAM_TLS = ("upstream-tls", "TLS with the destination failed", 502, "tls_protocol_error")
    UPSTREAM_CERTIFICATE = (
        "upstream-certificate",
        "the certificate of the destination does not verify",
        502,
        "tls_certificate_error",
    )
    CLIENT_CERTIFICATE = (
        "client-certificate",
        "the destination wants a client certificate, which passes tunnels only (inspect: {never: [HOST]})",
        502,
        "tls_alert_received",
    )
    UPSTREAM_PROXY = (
        "upstream-proxy",
        "the upstream proxy did not let the connection through",
        502,
        "proxy_internal_response",
    )
    UPSTREAM_RESPONSE = (
        "upstream-response",
        "the destination sent a malformed response",
        502,
        "http_protocol_error",
    )
    UPSTREAM_CLOSED = (
        "upstream-closed",
        "the destination closed the connection before it answered",
        502,
        "connection_terminated",
    )

    # Limits and ends.
    TOO_MANY_CONNECTIONS = (
        "too-many-connections",
        "the task has as many connections open as it may",
        503,
        "connection_limit_reached",
    )
    RATE_LIMITED = (
        "rate-limited",
        "the rule allows fewer connections a minute",
        429,
        "connection_limit_reached",
    )
    BYTES_LIMIT = ("bytes-limit", "the rule allows no more bytes up", 403, "http_request_denied")
    OUT_OF_RESOURCES = (
        "out-of-resources",
        "the gate has no descriptor or memory left for it",
        503,
        "proxy_internal_error",
    )
    PAUSED = ("paused", "the operator has paused this task's network", 403, "http_request_denied")
    CUT = ("cut", "the operator cut this connection", 403, "connection_terminated")
    IDLE_TIMEOUT = ("idle-timeout", "nothing moved for as long as the policy allows", 0, "")
    CLIENT_GONE = ("client-gone", "the client went away", 0, "")
    STOPPING = ("stopping", "the task or the gate is ending", 503, "proxy_internal_error")
    GATE_LOST = ("gate-lost", "the gate ended without a word while this was open", 0, "")
    INTERNAL = ("internal", "the gate failed; this is a bug of tidegate", 500, "proxy_internal_error")

    word: str
    sentence: str
    status: int
    proxy_error: str

    def __init__(self, word: str, sentence: str, status: int, proxy_error: str) -> None:
        self.word = word
        self.sentence = sentence
        self.status = status
        self.proxy_error = proxy_error

    @property
    def metric(self) -> str:
        """The name of this reason in metrics: the word with underscores."""
        return self.word.replace("-", "_")
