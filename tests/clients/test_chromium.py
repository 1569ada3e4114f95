"""Chromium, headless, by proxy and by capture, as root and with its own sandbox as an ordinary user (HLD-6, HLD-13).

What it asks of its own accord (updates, its start page) is refused like anything else; only the pages are looked at.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import ssl
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from tests.clients.kit import ALLOWED, CAPTURE, PROXY, REFUSED, Place, need, net_lines, run_client
from tests.clients.table import CHROMIUM
from tests.product import Product

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.lab.api import Lab

PORTS = {"http": 80, "https": 443}
SCRIPT = os.path.join(os.path.dirname(__file__), "chromium_get.py")


@pytest.fixture(params=["root", "user"])
def product(request: pytest.FixtureRequest, tmp_path: Path, lab: Lab) -> Product:
    """The product, as root and as an ordinary user."""
    if request.param == "root" and os.geteuid() != 0:
        pytest.skip("needs root: the ordinary user is the other half")
    lab.dns.set("a.test", A=[ALLOWED])
    lab.dns.set("b.test", A=[REFUSED])
    made = Product(tmp_path, user=request.param == "user")
    shutil.copy(SCRIPT, made.folder)
    return made


def chromium(product: Product, way: str, *words: str) -> list[str]:
    """Open URLs in a Chromium of one task; return the lines of their pages and then the `net:` lines."""
    place = Place("", "", str(product.folder), str(product.home), "")
    # As root it cannot have its own sandbox; as a user it does not start without it.
    own = [] if product.user or os.geteuid() != 0 else ["--no-sandbox"]
    done = run_client(product, way, [*CHROMIUM.command(place), *own, *words], "--allow", "a.test")
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines() + net_lines(done)


@pytest.mark.slow
@pytest.mark.usefixtures("nobody")
@pytest.mark.parametrize("way", [PROXY, CAPTURE])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_it_shows_a_page_and_a_refusal(
    product: Product, lab: Lab, way: str, scheme: str, record_property: Callable[[str, object], None]
) -> None:
    """GAT-7, GAT-9, HLD-6: the page of an allowed host; of another one the gate's words, or the error of its TLS."""
    need(CHROMIUM, record_property)
    port = PORTS[scheme]
    lab.origin("http", ALLOWED, port, tls="a.test" if scheme == "https" else None, body="it is a.test\n")
    lines = chromium(product, way, "--ignore-certificate-errors", "--", f"{scheme}://a.test/", f"{scheme}://b.test/")
    (words,) = CHROMIUM.refused[way, scheme].lines
    why = (
        f"b.test:{port}: would wait for approval; the command line asks no one [no-approver; no-rule, profile balanced]"
        f"; to allow it: --allow b.test:{port}"
    )
    assert lines[:2] == [CHROMIUM.gets, words.replace("{why}", why)]
    how = "captured" if way == CAPTURE else {"http": "forwarded", "https": "tunneled"}[scheme]
    assert f"net: a.test:{port} · {how} (command-line)" in lines
    assert f"net: b.test:{port} · refused, would wait for approval; the command line asks no one (no-rule)" in lines


@pytest.mark.slow
def test_its_own_sandbox_works_inside_the_hold(
    tmp_path: Path, lab: Lab, record_property: Callable[[str, object], None]
) -> None:
    """HLD-13: nested user namespaces stay possible, so Chromium's processes have their own and a filter more."""
    need(CHROMIUM, record_property)
    lab.dns.set("a.test", A=[ALLOWED])
    product = Product(tmp_path, user=True)
    shutil.copy(SCRIPT, product.folder)
    page = chromium(product, CAPTURE, "--", "chrome://sandbox/")
    assert "You are adequately sandboxed." in page
    assert "Seccomp-BPF sandbox\tYes" in page
    assert "Layer 1 Sandbox\tNamespace" in page


@pytest.mark.slow
def test_quic_falls_back(tmp_path: Path, lab: Lab, record_property: Callable[[str, object], None]) -> None:
    """HLD-6, JRN-3: an origin that offers HTTP/3 is reached by TCP all the same; the attempt by UDP is on record."""
    need(CHROMIUM, record_property)
    lab.dns.set("a.test", A=[ALLOWED])
    product = Product(tmp_path, user=True)
    shutil.copy(SCRIPT, product.folder)
    origin = lab.origin("http", ALLOWED, 443, tls="a.test", body="it is a.test\n", headers=['Alt-Svc: h3=":443"'])
    # A host with a certificate error is not believed that it has HTTP/3, so this certificate is let pass by its key.
    der = ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate((ALLOWED, 443)))
    key = x509.load_der_x509_certificate(der).public_key()
    spki = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    trusted = "--ignore-certificate-errors-spki-list=" + base64.b64encode(hashlib.sha256(spki).digest()).decode()
    lines = chromium(product, CAPTURE, trusted, "--enable-quic", "--", *["https://a.test/"] * 3)
    assert lines[:3] == [CHROMIUM.gets] * 3
    assert "net: a.test:443 · refused, only TCP passes through the gate (not-tcp)" in lines
    assert origin.requests >= 3
