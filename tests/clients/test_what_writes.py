"""What would write to a registry or a repository in another way than a publish: all of it is refused (INS-7).

Every tool's publish is in test_publishers.py. Here is what an agent tries next: other commands of the tools, methods
and headers in odd forms over HTTP/1.1 and HTTP/2, a WebSocket, the web API of a forge, one registry for another.
"""

from __future__ import annotations

import ssl
import sys
from typing import TYPE_CHECKING

import pytest
import trustme

from tests.client_programs import trusting
from tests.clients import servers
from tests.clients.kit import ALLOWED, net_lines, shown
from tests.https_site import HttpsSite

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.clients.real_registries import House
    from tests.lab.api import Lab
    from tests.product import Product

READ_ONLY = "package registries are read-only here"
PRESETS = "profile: balanced\npresets: {npm: ['npm.test:443'], pypi: ['pypi.test:443'], maven: ['maven.test:443']}\n"


def held(product: Product, text: str) -> tuple[str, str]:
    """Write a policy; return the option that names it."""
    (product.folder / "held.yaml").write_text(text)
    return "--policy", "held.yaml"


# --- Methods, headers and names in odd forms

_ODD = [
    ("-X", "PUT"),
    ("-X", "put"),
    ("-X", "Post"),
    ("-X", "PATCH"),
    ("-X", "DELETE"),
    ("-X", "MKCOL"),
    ("-X", "LOCK"),
    ("-X", "QUERY"),
    ("-X", "OPTIONS"),
    ("-X", "GETX"),
    ("-d", "{}", "-H", "X-HTTP-Method-Override: GET"),
    ("-H", "X-HTTP-Method-Override: PUT"),
    ("-H", "X-Http-Method: delete"),
    ("-H", "X_Method_Override: POST"),
]


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_no_method_in_an_odd_form_arrives(product: Product, house: House, version: str) -> None:
    """INS-7, INS-3: whatever is not what reads is refused, in both protocols; a GET beside it arrives."""
    argv = ["curl", "-sS", version, "-o", "/dev/null", "-w", "%{http_code}\n"]
    script = "\n".join([
        "url=$1; shift",
        *(f"\"$@\" {' '.join(map(repr, words))} \"$url\"" for words in _ODD),
        '"$@" "$url"',
    ])  # fmt: skip
    done = product.run(*held(product, PRESETS), "--", "sh", "-c", script, "sh", "https://npm.test/x", *argv)
    assert done.stdout.split() == ["403"] * len(_ODD) + ["404"], done.stderr
    assert house.arrived() == [f"GET npm.test /x 404 HTTP/{'2' if version == '--http2' else '1.1'}"]


def test_one_registry_is_not_asked_for_another(product: Product, house: House) -> None:
    """INS-4: the name that was asked for, SNI and Host are one host: behind one front, another's table never counts."""
    script = """
        c="curl -sS -o /dev/null -w %{http_code}\\n"
        $c -H 'Host: pypi.test' https://npm.test/x
        $c --http2 -H 'Host: pypi.test' https://npm.test/x
        $c --connect-to npm.test:443:pypi.test:443 -k https://npm.test/x || echo refused
        $c https://npm.test/x
    """
    done = product.run(*held(product, PRESETS), "--", "sh", "-c", script)
    assert done.stdout.split() == ["421", "421", "000", "refused", "404"], done.stdout + done.stderr
    assert [one.split()[:3] for one in house.arrived()] == [["GET", "npm.test", "/x"]]


# --- A WebSocket

_SOCKET = """
import os, ssl, sys
sys.excepthook = lambda kind, error, _: sys.exit(f"{kind.__name__}: {error}")
from websockets.sync.client import connect
with connect(sys.argv[1], ssl=ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])) as socket:
    socket.send("publish this")
    print(socket.recv())
"""


@pytest.mark.parametrize(
    ("policy", "passes"),
    [
        ("profile: balanced\npresets: {npm: ['a.test:443']}\n", False),
        ("network: {runtime: {allow: [{host: 'a.test:443', git: read}]}}\n", False),
        ("network: {runtime: {allow: [{host: 'a.test:443', methods: [GET]}]}}\n", True),
    ],
    ids=["registry", "git", "methods"],
)
def test_a_websocket_reads_nothing(product: Product, lab: Lab, tmp_path: Path, policy: str, *, passes: bool) -> None:
    """INS-7, INS-3: nothing behind it would be read, so a registry and `git: read` have none; a rule's GET does."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    product.environment.update(trusting(shown(product, str(tmp_path / "ca.pem"))))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("a.test").configure_cert(context)
    with servers.websocket(lab.listener(ALLOWED, 443), context):
        done = product.run(*held(product, policy), "--", sys.executable, "-c", _SOCKET, "wss://a.test/x")
    if passes:
        assert (done.returncode, done.stdout) == (0, "publish this\n"), done.stderr
        assert net_lines(done) == ["net: a.test:443 · inspected (policy)"]
    else:
        assert "InvalidStatus: server rejected WebSocket connection: HTTP 403" in done.stderr
        assert "· refused, " in net_lines(done)[0]


# --- The web API of a forge


@pytest.fixture
def forge(product: Product, lab: Lab, tmp_path: Path) -> Iterator[HttpsSite]:
    """A forge at https://a.test/ whose API takes everything."""
    with HttpsSite(lab.listener(ALLOWED, 443), ["a.test"], tmp_path) as made:
        product.environment.update(trusting(shown(product, made.ca_file)))
        made.takes["/"] = lambda _site, _method, _path, _body: b"taken\n"
        yield made


_API = """
    for path in api/v1/repos/acme/app/contents/git-upload-pack api/v4/projects/7/repository/files/git-upload-pack \\
                gitea/api/v1/repos/acme/app/contents/info/lfs/objects/batch api/models/a/b/branch/git-upload-pack; do
        curl -sS -w '%{http_code}\\n' -o said -d '{"content": "eA=="}' "https://a.test/$path?branch=main"
    done
    cat said
    curl -sS -d 0000 https://a.test/acme/app.git/git-upload-pack
"""


def test_a_forges_api_is_no_fetch(product: Product, forge: HttpsSite) -> None:
    """INS-7: an API that writes a file or a branch of the caller's naming is not git's fetch, whatever that name is."""
    policy = "network: {runtime: {allow: [{host: 'a.test:443', git: read}]}}\n"
    done = product.run(*held(product, policy), "--", "sh", "-c", _API)
    first, *more = done.stdout.splitlines()
    assert [first, *more[:3], more[-1]] == ["403"] * 4 + ["taken"], done.stdout
    assert "the rule allows other methods or paths only" in done.stdout
    assert forge.requests == ["POST /acme/app.git/git-upload-pack"]
