"""Pictures of every page with real tasks, for a person to look at; scripts/screenshots runs it.

It is a test by its form only, because the lab and the server are fixtures; pytest does not collect it by itself.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.lab import namespaces
from tests.portal.scene import Scene
from tests.product import Product
from tests.served import Served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.lab.api import Lab
    from tests.portal.kit import Visit

WIDTHS = {360: 780, 768: 1024, 1440: 900}
"""Width and height of the window."""


@pytest.fixture
def served(lab: Lab) -> Iterator[Served]:
    """A server whose user's home has a short name, for it is in the pictures."""
    assert lab
    namespaces.mount("tmpfs", "/home", "tmpfs")  # in this process's own mount namespace
    with Served(Product(Path("/"), user=False)) as found:
        yield found


def test_take_them(lab: Lab, served: Served, visit: Callable[..., Visit]) -> None:
    """Take them all into the folder of TIDEGATE_SCREENSHOTS."""
    folder = Path(os.environ["TIDEGATE_SCREENSHOTS"])
    folder.mkdir(parents=True, exist_ok=True)
    with Scene(lab, served) as scene:
        for width, height in WIDTHS.items():
            for scheme in ("light", "dark"):
                one = visit(viewport={"width": width, "height": height}, color_scheme=scheme)
                scene.play(one)
                for page in scene.pages():
                    one.go(page.address)
                    page.ready(one)
                    one.page.evaluate("scrollTo(0, 0)")
                    one.page.screenshot(path=folder / f"{page.name}-{width}-{scheme}.png", full_page=page.whole)
                one.close()
