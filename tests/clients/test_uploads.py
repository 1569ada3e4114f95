"""Large uploads to a server that is read inside TLS: refused half-way with a line that the client shows, or passed on.

The rows are in uploads.py. Many of them read no answer before all is sent; what they send is as much as that needs.
"""

from __future__ import annotations

import contextlib
import ssl
import textwrap
from typing import TYPE_CHECKING, Any

import pytest
import trustme

from tests.clients.kit import ALLOWED, PROXY, net_lines, run_inside, shown
from tests.clients.publishers import WHY
from tests.clients.uploads import H1, JAVA, SESSIONS, UPLOADERS, Uploader
from tests.h2_site import H2Site
from tests.https_site import HttpsSite

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from tests.lab.api import Lab
    from tests.product import Product

LARGE = 80 << 20  # bytes: more than all buffers on the way
SMALL = 3 << 20
URL = "https://a.test/up"
POLICY = """
network:
  runtime:
    allow:
      - {host: a.test:443, methods: [%s], paths: ["/**"]}
"""
CASES = [
    pytest.param(row, version, id=f"{row}-{'h1' if version is H1 else 'h2'}")
    for row in UPLOADERS
    for version in row.speaks
]


@contextlib.contextmanager
def server(product: Product, lab: Lab, folder: Path, version: str) -> Iterator[Any]:
    """A server at a.test that speaks one version; whoever starts the task trusts it."""
    listener = lab.listener(ALLOWED, 443)
    if version is H1:
        with HttpsSite(listener, ["a.test"], folder) as small:
            small.takes["/up"] = lambda _site, _method, _path, body: f"took {len(body)}\n".encode()
            small.pages["/up"] = ("text/plain", b"was read\n")
            product.environment["SSL_CERT_FILE"] = shown(product, small.ca_file)
            yield small
        return
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    product.environment["SSL_CERT_FILE"] = shown(product, str(folder / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("a.test").configure_cert(context)
    with H2Site(listener, context) as site:
        site.answers["/up"] = ([(":status", "200")], b"was taken\n", [])
        yield site


def send(product: Product, row: Uploader, size: int, methods: str) -> subprocess.CompletedProcess[str]:
    """Let the client send a file of so many bytes, where the rule allows some methods."""
    with open(product.folder / "big", "wb") as file:
        file.truncate(size)
    (product.folder / "Put.java").write_text(textwrap.dedent(JAVA))
    (product.folder / "read.yaml").write_text(POLICY % methods)
    return run_inside(product, PROXY, [*row.argv, URL], "--policy", "read.yaml")


@pytest.mark.parametrize(("row", "version"), CASES)
def test_an_upload_is_refused_while_it_is_under_way(
    product: Product, lab: Lab, tmp_path: Path, row: Uploader, version: str
) -> None:
    """B37, B46, B47, INS-3: the client gets 403 and the line, not a broken connection; the server hears nothing."""
    with server(product, lab, tmp_path, version) as site:
        done = send(product, row, LARGE, "GET")
        assert site.requests == []
    why = f"a.test:443: {WHY} [method-not-allowed; rule 'a.test:443' (policy, read.yaml:5:16)]"
    assert done.stdout.strip() == f"403 {why}", done.stderr
    assert net_lines(done) == [f"net: a.test:443 · refused, {WHY} (policy)"]


@pytest.mark.parametrize(("row", "version"), CASES)
def test_an_upload_that_is_allowed_arrives(
    product: Product, lab: Lab, tmp_path: Path, row: Uploader, version: str
) -> None:
    """INS-3: the neighbour: every byte, with 100 and in chunks as it was sent."""
    with server(product, lab, tmp_path, version) as site:
        done = send(product, row, SMALL, "PUT")
        bodies = list(site.bodies.values()) if version is H1 else site.bodies
    assert [len(body) for body in bodies] == [SMALL], done.stderr
    assert done.stdout.strip() == (f"200 took {SMALL}" if version is H1 else "200 was taken")
    assert net_lines(done) == ["net: a.test:443 · inspected (policy)"]


@pytest.mark.parametrize(
    ("row", "version"),
    [(row, version) for row in SESSIONS for version in row.speaks],
    ids=lambda value: str(value).replace("/", "-"),
)
def test_a_client_goes_on_after_a_refusal(
    product: Product, lab: Lab, tmp_path: Path, row: Uploader, version: str
) -> None:
    """GAT-3, INS-3: GET, PUT, GET by one client: on another connection in HTTP/1.1, on the same one in HTTP/2."""
    with server(product, lab, tmp_path, version) as site:
        done = send(product, row, SMALL, "GET")
        got = "was read" if version is H1 else "was taken"
        why = f"a.test:443: {WHY} [method-not-allowed; rule 'a.test:443' (policy, read.yaml:5:16)]"
        assert done.stdout.splitlines() == [got, why, got], done.stderr
        assert len(site.requests) == 2
        if version is not H1:
            assert site.connections == 1
    assert net_lines(done) == [
        "net: a.test:443 · inspected (policy)",
        f"net: a.test:443 · refused, {WHY} (policy)",
    ]
