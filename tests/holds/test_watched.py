"""Unix sockets that others make while a container's task runs: out of its reach, and its own are not (HLD-14)."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.engines import IMAGE
from tests.holds import late
from tests.product import Product

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("engines")]


@pytest.fixture
def product(engine: tuple[str, dict[str, str]]) -> Iterator[Product]:
    """A person's folder, and one engine."""
    root = Path(tempfile.mkdtemp(prefix="tidegate-watched-", dir="/var/tmp"))
    made = Product(root, user=False)
    made.environment |= engine[1]
    try:
        yield made
    finally:
        shutil.rmtree(root)


def test_a_late_socket_is_refused_and_a_shared_one_is_not(engine: tuple[str, dict[str, str]], product: Product) -> None:
    """In the workspace, by a link in a share: refused, and nobody came. In a share, and its own: reached (HLD-14)."""
    share = product.home / "share"
    share.mkdir()
    shares = [part for path in (*late.NEEDS, share) for part in ("--share", str(path))]
    words = ("--hold", engine[0], "--image", IMAGE, *shares, "--", *late.PYTHON, late.CLIENT)
    process = product.start(*words, f"{share}/late.sock", f"{share}/link.sock")
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    with late.serve(product.folder) as outside, late.serve(share) as shared:
        os.symlink(product.folder / "late.sock", share / "link.sock")
        (product.folder / "go").touch()
        out, err = process.communicate(timeout=late.PATIENCE)
        assert (process.returncode, out) == (0, "ECONNREFUSED done done ECONNREFUSED\n"), err
        assert (late.reached(outside), late.reached(shared)) == (False, True)
    assert "can be reached" not in err
