"""A person's runs in every hold that has a gate, for tests of what is read inside TLS: one program, the same words.

    places = PLACES                                         # for `parametrize`: the hold, and the way of a container
    with Inside(place, request, lab) as inside:
        inside.run("--policy", "read.yaml", script="curl ...")

In a container the machine's own /usr is shared, so that the same programs run there; its image has one root of its own,
where a distribution has its bundle.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import pytest
import trustme

from tests.client_programs import trusting
from tests.clients.kit import ALLOWED, REFUSED, shown
from tests.engines import image_tar, of_one_worker
from tests.holds import held
from tests.product import Product
from tidegate.holds.container import relay_image, vm_transport
from tidegate.holds.container.engine import Engine

if TYPE_CHECKING:
    import subprocess

    from tests.lab.api import Lab

PATIENCE: Final = 120
ROOT: Final = trustme.CA().cert_pem.bytes()
"""What the images of these tests trust."""

DISTRIBUTIONS: Final = {
    "debian": {"etc/ssl/certs/ca-certificates.crt": ROOT},
    "alpine": {"etc/ssl/certs/ca-certificates.crt": ROOT, "etc/ssl/cert.pem": "certs/ca-certificates.crt"},
    "fedora": {
        "etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem": ROOT,
        "etc/pki/tls/certs/ca-bundle.crt": "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    },
    "none": {},
}
"""Files of an image; a text is where a link leads."""


OWN: Final = ("netns", "landlock", "uid")
CONTAINED: Final = ("docker", "podman", "docker relay", "podman relay", "docker vm", "podman vm")
PLACES: Final = [
    *OWN,
    *(pytest.param(one, marks=(pytest.mark.slow, *of_one_worker(one.partition(" ")[0]))) for one in CONTAINED),
]


class Inside:
    """See the head of the file."""

    def __init__(self, place: str, request: pytest.FixtureRequest, lab: Lab, *, image: str = "debian") -> None:
        self.hold, _, self.transport = place.partition(" ")
        if self.hold == "uid" and os.geteuid() != 0:
            pytest.skip("the hold uid is root's: it needs other users' ids and the machine's nftables")
        held.need(self.hold)
        self._words: list[str] = ["--hold", self.hold]
        environment: dict[str, str] = {}
        if self.hold in ("docker", "podman"):
            environment = dict(request.getfixturevalue(self.hold))
            environment[vm_transport.VARIABLE] = "host,127.0.0.1"  # the default network of these engines leads nowhere
        self.root = held.new_base()
        os.chmod(self.root, 0o755)
        self.product = Product(Path(self.root), user=False)
        self.product.environment.update(environment)
        self.product.environment.update(trusting(shown(self.product, lab.ca_file)))
        lab.dns.set("a.test", A=[ALLOWED])
        lab.dns.set("b.test", A=[REFUSED])
        self.environ = {**os.environ, **environment}
        if environment:
            self._words += self._contained(image)
        if self.hold != "netns" and not sys.base_prefix.startswith("/usr"):
            self._words += ["--share", f"{sys.base_prefix}:ro"]

    def _contained(self, kind: str) -> list[str]:
        engine = self.engine
        self.image = f"tidegate-test-{kind}:1"
        if not engine.has_image(self.image):
            engine.import_image(self.image, with_files(DISTRIBUTIONS[kind]))
        words = ["--image", self.image, "--share", "/usr:ro"]
        if self.transport:
            if not engine.has_image(relay_image.default_image()):
                done = self.product.tidegate("relay-image", "build", "--engine", self.hold, timeout=PATIENCE)
                assert done.returncode == 0, done.stderr
            words += ["--transport", self.transport, "--capture", "off"]
        return words

    @property
    def engine(self) -> Engine:
        """The engine of its containers."""
        return Engine(self.hold, self.environ)

    @property
    def bound(self) -> bool:
        """Whether the bundle lies over the distribution's, too."""
        return self.hold != "landlock"

    def words(self, *options: str, script: str) -> tuple[str, ...]:
        """The arguments of a run of a shell script."""
        return (*self._words, *options, "--", "sh", "-c", script)

    def run(self, *options: str, script: str, **how: Any) -> subprocess.CompletedProcess[str]:
        """Run a shell script to its end."""
        how.setdefault("timeout", PATIENCE)
        return self.product.run(*self.words(*options, script=script), **how)

    def write(self, name: str, text: str) -> None:
        """Write a file of the workspace."""
        (self.product.folder / name).write_text(text)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.root, ignore_errors=True)


def with_files(files: dict[str, bytes | str]) -> bytes:
    """The image of the tests with files and links beside."""
    written = io.BytesIO(image_tar())
    with tarfile.open(fileobj=written, mode="a") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.mode = 0o644
            if isinstance(content, str):
                member.type, member.linkname = tarfile.SYMTYPE, content
                tar.addfile(member)
            else:
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    return written.getvalue()
