"""Unix sockets that others make while a container's task runs: out of its reach, and its own are not (HLD-14)."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bench.engines import image_tar
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


def image_with_link(engine: tuple[str, dict[str, str]], link: Path, target: str) -> str:
    """The image of the tests with one link more; its name."""
    name = "tidegate-test-linked:1"
    written = io.BytesIO(image_tar())
    with tarfile.open(fileobj=written, mode="a") as tar:
        one = tarfile.TarInfo(str(link).strip("/"))
        one.type, one.linkname = tarfile.SYMTYPE, target
        tar.addfile(one)
    words = [engine[0], "import", "-", name]
    subprocess.run(words, env={**os.environ, **engine[1]}, input=written.getvalue(), capture_output=True, check=True)
    return name


def test_an_image_does_not_lead_the_workspace_over_the_starter(
    engine: tuple[str, dict[str, str]], product: Product
) -> None:
    """It knows where the starter was, and has a link to there: what runs first is not the workspace's (HLD-7, HLD-14).

    The neighbour: the workspace is mounted where the link leads, so such an image is as good as another.
    """
    words = ("--hold", engine[0], "--image")
    seen = product.run(*words, IMAGE, "--", "cat", "/proc/1/cmdline", timeout=late.PATIENCE).stdout
    place, name = os.path.split(seen.split("\0", maxsplit=1)[0])
    assert name == "init"
    program = product.folder / "start"
    program.write_text("#!/bin/sh\necho another program, unwatched\n")
    program.chmod(0o755)
    image = image_with_link(engine, product.folder, place)
    try:
        done = product.run(*words, image, "--", "sh", "-c", "ls; grep filters /proc/1/status", timeout=late.PATIENCE)
    finally:
        subprocess.run([engine[0], "rmi", image], env={**os.environ, **engine[1]}, capture_output=True, check=True)
    assert (done.returncode, done.stdout.split()) == (0, ["start", "Seccomp_filters:", "2"]), done.stderr
