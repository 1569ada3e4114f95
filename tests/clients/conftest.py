"""What the tests of tests/clients share: the product, and the two places of the lab."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.client_programs import trusting
from tests.clients.kit import ALLOWED, REFUSED, shown
from tests.clients.publishers import TOKEN
from tests.clients.real_registries import HOSTS, House
from tests.clients.registries import repository
from tests.product import Product

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.lab.api import Lab

REFUSED_PORTS = (22, 80, 443, 873, 5432, 6379)


@pytest.fixture
def product(tmp_path: Path, lab: Lab) -> Product:
    """The product in a folder of its own; a.test and b.test have addresses."""
    lab.dns.set("a.test", A=[ALLOWED])
    lab.dns.set("b.test", A=[REFUSED])
    made = Product(tmp_path, user=False)
    made.environment.update(trusting(shown(made, lab.ca_file)))
    return made


@pytest.fixture
def nobody(lab: Lab) -> Iterator[None]:
    """Fails a test in which b.test was looked up or connected to."""
    listeners = [lab.canary(REFUSED, port, machine=False) for port in REFUSED_PORTS]
    yield
    assert [one.connections for one in listeners] == [0] * len(listeners)
    assert lab.dns.count("b.test", "A") == lab.dns.count("b.test", "AAAA") == 0


@pytest.fixture(scope="session")
def _house() -> Iterator[House]:
    made = House()
    yield made
    made.close()


@pytest.fixture
def house(product: Product, lab: Lab, _house: House) -> Iterator[House]:
    """The registries; whoever starts the task trusts them, by one variable."""
    for host in HOSTS:
        lab.dns.set(host, A=[ALLOWED])
    plain = {name: value for name, value in trusting("-").items() if value != "-"}
    kept = {name: product.environment[name] for name in ("HOME", "PATH", "LANG")}
    product.environment.clear()
    product.environment.update(kept | plain | {"SSL_CERT_FILE": shown(product, _house.ca_file)})
    (product.home / TOKEN).write_text(_house.token)
    repository(product.home)
    _house.small.repositories = product.home
    with _house.open(lab.listener(ALLOWED, 443)):
        yield _house
