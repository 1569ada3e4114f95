"""An HTTPS site of the lab that serves git repositories, and a product that trusts it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.client_programs import trusting
from tests.clients.kit import ALLOWED, shown
from tests.https_site import HttpsSite

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.lab.api import Lab
    from tests.product import Product


@contextmanager
def git_site(product: Product, lab: Lab, tmp_path: Path) -> Iterator[HttpsSite]:
    """https://a.test/git/, with no repository yet."""
    with HttpsSite(lab.listener(ALLOWED, 443), ["a.test"], tmp_path) as made:
        product.environment.update(trusting(shown(product, made.ca_file)))
        made.repositories = tmp_path / "repositories"
        made.repositories.mkdir()
        yield made
