"""What the tests of tests/clients share: the product, and the two places of the lab."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.client_programs import trusting
from tests.clients.kit import ALLOWED, REFUSED, shown
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
