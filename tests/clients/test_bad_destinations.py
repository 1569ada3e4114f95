"""Destinations that are no good, seen by real tools in a real run: by proxy and by capture (INS-3, INS-9, B113)."""

from __future__ import annotations

import contextlib
import re
import ssl
from typing import TYPE_CHECKING

import pytest

from tests.certificates import CLIENTS, Made
from tests.client_programs import trusting
from tests.clients.kit import CAPTURE, PROXY, held, run_inside, shown
from tests.unit.gate.test_inspected import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.lab.api import Lab
    from tests.product import Product

ROOT = Made("a root of one's own", ca=True)
STRANGER = Made("nobody's root", ca=True)
BETWEEN = ROOT.issue("between", ca=True)
KINDS: dict[str, tuple[Callable[[str], str], str]] = {
    "good": (lambda host: ROOT.issue("", names=[host]).chain(), ""),
    "expired": (lambda host: ROOT.issue("", names=[host], days=(-9, -1)).chain(), "certificate has expired"),
    "later": (lambda host: ROOT.issue("", names=[host], days=(1, 9)).chain(), "certificate is not yet valid"),
    "named": (lambda host: ROOT.issue("", names=[f"x.{host}"]).chain(), "Hostname mismatch"),
    "common": (lambda host: ROOT.issue(host).chain(), "Hostname mismatch"),
    "stranger": (lambda host: STRANGER.issue("", names=[host]).chain(), "unable to get local issuer certificate"),
    "missing": (lambda host: BETWEEN.issue("", names=[host]).chain(), "unable to get local issuer certificate"),
    "self": (lambda host: Made(host, names=[host]).chain(), "self-signed certificate"),
    "clients": (lambda host: ROOT.issue("", names=[host], usages=CLIENTS).chain(), "unsuitable certificate purpose"),
    "asks": (lambda host: ROOT.issue("", names=[host]).chain(), "inspect: {never: [HOST]}"),
    "old": (lambda host: ROOT.issue("", names=[host]).chain(), "tlsv1 alert protocol version"),
}
"""First label of the host -> what its server shows, and what the tool prints."""


@pytest.fixture
def heard(product: Product, lab: Lab, tmp_path: Path) -> Iterator[list[bytes]]:
    """Serve all of them, to a product that trusts ROOT; what they heard."""
    (tmp_path / "root.pem").write_text(ROOT.pem)
    product.environment.update(trusting(shown(product, str(tmp_path / "root.pem"))))
    asked: list[bytes] = []
    with contextlib.ExitStack() as stack:
        for number, (kind, (make, _)) in enumerate(KINDS.items()):
            address = f"1.2.3.{number + 20}"
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            (tmp_path / "chain.pem").write_text(make(f"{kind}.test"))
            context.load_cert_chain(tmp_path / "chain.pem")
            if kind == "asks":
                context.verify_mode = ssl.CERT_REQUIRED
                context.load_verify_locations(cadata=ROOT.pem)
            if kind == "old":
                context.set_ciphers("DEFAULT:@SECLEVEL=0")
                context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
                context.maximum_version = ssl.TLSVersion.TLSv1_1
            lab.dns.set(f"{kind}.test", A=[address])
            stack.enter_context(serving(lab, context, address, asked))
        yield asked


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
@pytest.mark.parametrize("way", [PROXY, CAPTURE])
def test_each_kind_is_told_to_the_tool_and_asked_for_nothing(product: Product, heard: list[bytes], way: str) -> None:
    """INS-3, B113, issue 6: one run, a host of each kind: curl prints why; no refused one hears a request."""
    hosts = [f"{kind}.test" for kind in KINDS]
    rules = "".join(f"      - {{host: '{host}:443', paths: ['/**']}}\n" for host in hosts)
    words = [word for host in hosts for word in ("-w", "\n<%{http_code}>\n", f"https://{host}/x", "--next")][:-1]
    options = held(product, f"network:\n  runtime:\n    allow:\n{rules}")
    done = run_inside(product, way, ["curl", "-sS", "-m", "20", *words], *options)
    answers = re.findall(r"(.*?)\n<(\d+)>\n", done.stdout, re.DOTALL)
    assert len(answers) == len(KINDS), done.stdout + done.stderr
    for (kind, (_, says)), (text, status) in zip(KINDS.items(), answers, strict=True):
        assert (status, says in text) == ("200" if kind == "good" else "502", True), (kind, text)
    assert len(heard) == 1
    assert b"Host: good.test" in heard[0]
    assert "net: good.test:443 · inspected (policy)" in done.stderr
    assert "net: expired.test:443 · refused, " in done.stderr
