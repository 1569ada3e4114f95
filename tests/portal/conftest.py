"""The browser of this folder's tests, a running server, and visits of its portal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.portal.kit import Chromium, Curls, Visit, portal_url
from tests.product import Product
from tests.served import Served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Any

    from tests.lab.api import Lab


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    """The browser."""
    found = Chromium()
    yield found
    found.stop()


@pytest.fixture
def served(tmp_path: Path, lab: Lab) -> Iterator[Served]:
    """A running server of whoever runs the tests, on a machine of the lab where ask.test is a host."""
    lab.dns.set("ask.test", A=["1.2.3.4"])
    lab.dns.set("*.ask.test", A=["1.2.3.4"])
    lab.origin("http", "1.2.3.4", 80, body="hello\n")
    with Served(Product(tmp_path, user=False)) as found:
        yield found


@pytest.fixture
def curls(served: Served) -> Iterator[Curls]:
    """Real tasks, each a curl that waits for a person; those that still run end with the test."""
    found = Curls(served)
    yield found
    found.end()


@pytest.fixture
def visit(chromium: Chromium, served: Served) -> Iterator[Callable[..., Visit]]:
    """Open the portal: `visit("--viewer", viewport=…)`. At the end of the test each page is judged."""
    visits: list[Visit] = []

    def open_one(*words: str, **options: Any) -> Visit:
        visits.append(Visit(chromium, portal_url(served, *words), **options))
        return visits[-1]

    yield open_one
    for one in visits:
        one.close()
