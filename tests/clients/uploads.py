"""Clients that send a large file by PUT: one row each, with the versions of HTTP that they speak to the server.

Data, and the smallest program for each library: it prints the status and the text of its answer. `big` is the file.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.clients.kit import MODULES
from tests.clients.table import BUN, EXCEPTHOOK, JS, NODE24

if TYPE_CHECKING:
    from collections.abc import Sequence

H1, H2 = "HTTP/1.1", "HTTP/2"

_CONTEXT = "context = ssl.create_default_context(cafile=os.environ['SSL_CERT_FILE'])\n"
_PYTHON = {
    "requests": "import requests\nr = requests.put(sys.argv[1], data=open('big', 'rb'))\nprint(r.status_code, r.text)",
    "requests in chunks": "import requests\nfile = open('big', 'rb')\n"
    "r = requests.put(sys.argv[1], data=iter(lambda: file.read(65536), b''))\nprint(r.status_code, r.text)",
    "urllib": "import urllib.request as u, urllib.error\n"
    "size = {'Content-Length': os.path.getsize('big')}\n"
    "try:\n    r = u.urlopen(u.Request(sys.argv[1], data=open('big', 'rb'), method='PUT', headers=size))\n"
    "except urllib.error.HTTPError as error:\n    r = error\nprint(r.status, r.read().decode())",
    "httpx": f"import httpx\n{_CONTEXT}client = httpx.Client(verify=context, http2=True)\n"
    "r = client.put(sys.argv[1], content=open('big', 'rb'))\nprint(r.status_code, r.text)",
    "aiohttp": "import aiohttp, asyncio\n"
    f"{_CONTEXT}"
    "async def main():\n"
    "    async with aiohttp.ClientSession(trust_env=True) as session:\n"
    "        async with session.put(sys.argv[1], data=open('big', 'rb'), ssl=context) as answer:\n"
    "            print(answer.status, await answer.text())\n"
    "asyncio.run(main())",
}
_FETCH = f"""{JS}
    fetch(url, {{ method: 'PUT', body: require('fs').readFileSync('big') }})
        .then(async (answer) => console.log(answer.status, await answer.text())).catch(failed);
"""
_HTTPS = f"""{JS}
    const request = require('https').request(url, {{ method: 'PUT' }}, (answer) => {{
        let text = '';
        answer.on('data', (data) => text += data).on('error', failed)
            .on('end', () => {{ console.log(answer.statusCode, text); process.exit(0); }});
    }}).on('error', failed);
    require('fs').createReadStream('big').pipe(request);
"""
JAVA = """
    import java.net.*;
    import java.net.http.*;
    import java.nio.file.*;

    class Put {
        public static void main(String[] words) throws Exception {
            HttpRequest put = HttpRequest.newBuilder(new URI(words[0]))
                .PUT(HttpRequest.BodyPublishers.ofFile(Path.of("big"))).build();
            HttpResponse<String> answer = HttpClient.newHttpClient().send(put, HttpResponse.BodyHandlers.ofString());
            System.out.println(answer.statusCode() + " " + answer.body());
        }
    }
"""
_CURL = "curl -sS -w '%{http_code} ' -o answer"


@dataclass(frozen=True)
class Uploader:
    """One row."""

    name: str
    argv: Sequence[str]  # the URL comes behind it
    speaks: tuple[str, ...] = (H1,)

    def __str__(self) -> str:
        """Its name, in a test's."""
        return self.name.replace(" ", "-")


def _python(name: str) -> list[str]:
    return [sys.executable, "-c", EXCEPTHOOK + _PYTHON[name]]


def _curl(words: str) -> list[str]:
    return ["sh", "-c", f'{_CURL} {words} "$0" <big && cat answer']


UPLOADERS: tuple[Uploader, ...] = (
    Uploader("curl that waits for 100", _curl("--http1.1 --expect100-timeout 30 -T big")),
    Uploader("curl", _curl("-H Expect: -T big"), (H1, H2)),
    Uploader("curl in chunks", _curl("-H Expect: -T -"), (H1, H2)),
    Uploader("requests", _python("requests")),
    Uploader("requests in chunks", _python("requests in chunks")),
    Uploader("urllib", _python("urllib")),
    Uploader("httpx", _python("httpx"), (H1, H2)),
    Uploader("aiohttp", _python("aiohttp")),
    Uploader("Node 24 fetch", [NODE24, "-e", _FETCH]),
    Uploader("Node 24 https", [NODE24, "-e", _HTTPS]),
    Uploader("Bun fetch", [BUN, "-e", _FETCH]),
    Uploader("Java HttpClient", ["java", "Put.java"], (H1, H2)),
)

_TURNS = "for method in ('GET', 'PUT', 'GET'):\n    print(client.request(method, sys.argv[1]).text.strip())\n"
_UNDICI = f"""
    const {{ request, EnvHttpProxyAgent }} = require('{MODULES}/undici');
    const dispatcher = new EnvHttpProxyAgent();
    (async () => {{
        for (const method of ['GET', 'PUT', 'GET'])
            console.log((await (await request(process.argv.at(-1), {{ method, dispatcher }})).body.text()).trim());
        process.exit(0);
    }})();
"""
SESSIONS: tuple[Uploader, ...] = (
    Uploader("curl", ["sh", "-c", 'curl -sS "$0" --next -sS -T big "$0" --next -sS "$0"'], (H1, H2)),
    Uploader("requests", [sys.executable, "-c", f"import requests, sys\nclient = requests.Session()\n{_TURNS}"]),
    Uploader(
        "httpx",
        [
            sys.executable,
            "-c",
            f"import httpx, os, ssl, sys\n{_CONTEXT}client = httpx.Client(verify=context, http2=True)\n{_TURNS}",
        ],
        (H1, H2),
    ),
    Uploader("undici", ["node", "-e", _UNDICI]),
)
"""Those that make three requests, GET, PUT and GET, and print each answer's text."""
