"""Every client that fetches a URL, by proxy and by capture, let through and refused, word for word (GAT-7 to GAT-10).

The rows are in table.py. Versions are printed at the end of the run, and docs/clients.md says which ones were tried.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.clients.kit import (
    ALLOWED,
    CAPTURE,
    PROXY,
    Client,
    Place,
    assert_prints,
    need,
    net_lines,
    own_lines,
    refusal,
    run_client,
    trust_store,
)
from tests.clients.table import FETCHERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.api import Lab
    from tests.product import Product

PORTS = {"http": 80, "https": 443}
CASES = [(client, way, scheme) for client in FETCHERS for way in (PROXY, CAPTURE) for scheme in PORTS]

pytestmark = pytest.mark.parametrize(("row", "way", "scheme"), CASES, ids=lambda value: str(value).replace(" ", "-"))


@pytest.fixture
def place(
    product: Product,
    lab: Lab,
    record_property: Callable[[str, object], None],
    row: Client,
    scheme: str,
) -> Place:
    """Where the row's client runs, if it is here; for Java with a trust store."""
    need(row, record_property)
    if row.needs_trust_store:
        trust_store(product, lab.ca_file)
    return Place(scheme, "a.test", str(product.folder), str(product.home), product.environment["SSL_CERT_FILE"])


def test_it_is_let_through(product: Product, lab: Lab, row: Client, way: str, scheme: str, place: Place) -> None:
    """GAT-1, GAT-10, HLD-6: with a rule for the host the body arrives, in the way that was meant."""
    port = PORTS[scheme]
    origin = lab.origin("http", ALLOWED, port, tls="a.test" if scheme == "https" else None, body=f"{row.gets}\n")
    done = run_client(product, way, row.command(place), "--allow", "a.test")
    if way == PROXY and row.alone is not None:
        assert origin.connections == 0
        assert_prints(done, row, row.alone, "a.test", port)
        return
    assert (done.returncode, row.gets in own_lines(done)) == (0, True), done.stderr
    lines = [line for line in net_lines(done) if "· not connected, " not in line]  # from a race of its addresses
    hows = {f"net: a.test:{port} · {how} (command-line)" for how in HOWS[way, scheme]}
    assert len(lines) == 1
    assert lines[0] in hows


# A client may ask for a tunnel for an http URL, too: undici does.
HOWS = {
    (PROXY, "http"): ("forwarded", "tunneled"),
    (PROXY, "https"): ("tunneled",),
    (CAPTURE, "http"): ("captured",),
    (CAPTURE, "https"): ("captured",),
}


@pytest.mark.usefixtures("nobody")
def test_it_is_refused_word_for_word(product: Product, row: Client, way: str, scheme: str, place: Place) -> None:
    """GAT-7, GAT-9, B73: what its user reads, before any look-up; tidegate's lines name the rule that would help."""
    port = PORTS[scheme]
    refused = Place(scheme, "b.test", place.folder, place.home, place.ca_file)
    done = run_client(product, way, row.command(refused), "--allow", "a.test")
    if way == PROXY and row.alone is not None:
        assert_prints(done, row, row.alone, "b.test", port)
        return
    assert net_lines(done) == refusal("b.test", port)
    assert_prints(done, row, row.refused[way, scheme], "b.test", port)
