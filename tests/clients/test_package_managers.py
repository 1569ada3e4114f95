"""Every package manager, by proxy and by capture, let through and refused, word for word (GAT-7 to GAT-10).

The rows are in package_managers.py, the registries in registries.py. Versions are printed at the end of the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.client_programs import trusting
from tests.clients import registries
from tests.clients.kit import (
    ALLOWED,
    CAPTURE,
    PROXY,
    Client,
    Place,
    assert_prints,
    need,
    net_lines,
    refusal,
    run_client,
    shown,
    trust_store,
)
from tests.clients.package_managers import PACKAGE_MANAGERS
from tests.https_site import HttpsSite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.lab.api import Lab
    from tests.product import Product

_SLOW = {"Yarn 1", "poetry", "Maven"}  # the first two try again for some seconds, whatever they are told
CASES = [
    pytest.param(row, way, marks=pytest.mark.slow if row.name in _SLOW else (), id=f"{row}-{way.replace(' ', '-')}")
    for row in PACKAGE_MANAGERS
    for way in (PROXY, CAPTURE)
]
HOW = {PROXY: "tunneled", CAPTURE: "captured"}

pytestmark = pytest.mark.parametrize(("row", "way"), CASES)


@pytest.fixture
def site(
    product: Product, lab: Lab, tmp_path: Path, record_property: Callable[[str, object], None], row: Client
) -> Iterator[HttpsSite]:
    """Every registry at https://a.test/, and the row's client, if it is here."""
    need(row, record_property)
    with HttpsSite(lab.listener(ALLOWED, 443), ["a.test"], tmp_path) as made:
        product.environment.update(trusting(shown(product, made.ca_file)))
        for serve in (
            registries.python_index,
            registries.npm_registry,
            registries.crates,
            registries.maven_repository,
            registries.go_proxy,
        ):
            serve(made)
        if row.name == "gem":
            registries.gem_server(made, tmp_path / "gem")
        if row.needs_trust_store:
            trust_store(product, made.ca_file)
        yield made


def place(product: Product, host: str) -> Place:
    """Where the row's client runs, and whom it asks."""
    return Place("https", host, str(product.folder), str(product.home), product.environment["SSL_CERT_FILE"])


def test_it_fetches(product: Product, site: HttpsSite, row: Client, way: str) -> None:
    """GAT-1, GAT-10, HLD-6: with a rule for the registry it gets the package, in the way that was meant."""
    done = run_client(product, way, row.command(place(product, "a.test")), "--allow", "a.test:443")
    assert done.returncode == 0, done.stderr
    assert f"GET {row.gets}" in site.requests
    lines = [line for line in net_lines(done) if "· not connected, " not in line]  # from a race of its addresses
    assert lines == [f"net: a.test:443 · {HOW[way]} (command-line)"]


@pytest.mark.usefixtures("nobody")
def test_it_is_refused_word_for_word(product: Product, site: HttpsSite, row: Client, way: str) -> None:
    """GAT-7, GAT-9, B73: what its user reads, before any look-up; tidegate's lines name the rule that would help."""
    done = run_client(product, way, row.command(place(product, "b.test")), "--allow", "a.test:443")
    assert net_lines(done) == refusal("b.test", 443)
    assert site.requests == []
    assert_prints(done, row, row.refused[way, "https"], "b.test", 443)
