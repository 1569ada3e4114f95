"""WebSocket and gRPC read inside TLS, by real clients: what the rule names passes, another path is refused (INS-3).

The clients are rows of services.py; what they print of a refusal is here.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import pytest
import trustme

from tests.clients import servers
from tests.clients.kit import (
    ALLOWED,
    CAPTURE,
    PROXY,
    Place,
    Words,
    assert_prints,
    need,
    net_lines,
    own_lines,
    run_inside,
    shown,
)
from tests.clients.publishers import WHY
from tests.clients.services import SERVICES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.lab.api import Lab
    from tests.product import Product

ROWS = {row.name: row for row in SERVICES}
REFUSED = {
    ("Python websockets", "wss"): Words(1, ("InvalidStatus: server rejected WebSocket connection: HTTP 403",)),
    ("ws", "wss"): Words(1, ("Unexpected server response: 403",)),
    ("websocat", "wss"): Words(
        1, ("websocat: WebSocketError: WebSocketError: Received unexpected status code (403 Forbidden)",)
    ),
    ("Python grpcio", "grpc"): Words(1, ("PERMISSION_DENIED {why}",)),
    ("grpc-js", "grpc"): Words(1, ("7 {why}",)),
}
POLICY = """
network:
  runtime:
    allow:
      - {host: a.test:443, paths: [%s]}
"""

pytestmark = [
    pytest.mark.parametrize(("name", "service"), list(REFUSED), ids=lambda value: value.replace(" ", "-")),
    pytest.mark.parametrize("way", [PROXY, CAPTURE], ids=["proxy", "capture"]),
]


@pytest.fixture
def _served(
    product: Product,
    lab: Lab,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
    name: str,
    service: str,
    way: str,
) -> Iterator[None]:
    row = ROWS[name]
    need(row, record_property)
    if row.alone is not None and way == PROXY:
        pytest.skip("it knows no proxy")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    kept = {one: product.environment[one] for one in ("HOME", "PATH", "LANG")}
    product.environment.clear()
    product.environment.update(kept | {"SSL_CERT_FILE": shown(product, str(tmp_path / "ca.pem"))})
    leaf = authority.issue_cert("a.test")
    listener = lab.listener(ALLOWED, 443)
    if service == "grpc":
        with servers.echo_by_grpc(listener, tmp_path, leaf):
            yield
        return
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    leaf.configure_cert(context)
    with servers.websocket(listener, context):
        yield


@pytest.mark.usefixtures("_served")
def test_it_is_served_and_read(product: Product, name: str, service: str, way: str) -> None:
    """INS-2, INS-3: it trusts the authority of its task by what it is given; messages and trailers pass."""
    (product.folder / "read.yaml").write_text(POLICY % '"/**"')
    argv = ROWS[name].command(Place(service, "a.test", str(product.folder), str(product.home), ""))
    done = run_inside(product, way, argv, "--policy", "read.yaml")
    assert (done.returncode, "hello" in own_lines(done)) == (0, True), done.stdout + done.stderr
    assert [one for one in net_lines(done) if "not connected" not in one] == ["net: a.test:443 · inspected (policy)"]


@pytest.mark.usefixtures("_served")
def test_it_is_refused_word_for_word(product: Product, name: str, service: str, way: str) -> None:
    """INS-6, GAT-7: another path than the rule's; a gRPC client shows the line, a WebSocket client the status."""
    (product.folder / "read.yaml").write_text(POLICY % '"/other/**"')
    argv = ROWS[name].command(Place(service, "a.test", str(product.folder), str(product.home), ""))
    done = run_inside(product, way, argv, "--policy", "read.yaml")
    # gRPC's clients may open a second connection, which they leave, or their end cuts off.
    lines = [line for line in net_lines(done) if "· not connected, " not in line]
    assert lines[-1] == f"net: a.test:443 · refused, {WHY} (policy)"
    why = f"a.test:443: {WHY} [method-not-allowed; rule 'a.test:443' (policy, read.yaml:5:16)]"
    assert_prints(done, ROWS[name], REFUSED[name, service], "a.test", 443, why)
