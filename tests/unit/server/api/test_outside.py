"""The door for a phone: an address that was named, TLS, and pairing through it."""

from __future__ import annotations

import datetime as dt
import http.client
import json
import os
import socket
import ssl
import stat
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from tests.unit.server.api.running import Whole
from tidegate.model.errors import StartError, UsageError
from tidegate.server.api.outside import LEAF_DAYS, RENEW_DAYS, bind_outside, certificate

if TYPE_CHECKING:
    from pathlib import Path

ADDRESS = "192.0.2.77"
NOW = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    "text",
    [
        "0.0.0.0:7332", "[::]:7332", "127.0.0.1:7332", "[::1]:7332", "224.0.0.1:7332", "example.com:7332",
        "192.0.2.1", "192.0.2.1:0", "192.0.2.1:99999", "::1:7332", "192.0.2.01:80", ":7332", "x",
    ],
)  # fmt: skip
def test_only_one_address_of_this_machine_is_listened_on(text: str) -> None:
    """SRV-2: all addresses, loopback, names and what is no address and port are refused with what to write."""
    with pytest.raises(UsageError) as caught:
        bind_outside(text)
    assert caught.value.fix


def test_nothing_is_listened_on_unasked() -> None:
    """SRV-2: no text, no listener; an address that is not this machine's cannot be bound and says so."""
    assert bind_outside("") is None
    with pytest.raises(StartError):
        bind_outside("192.0.2.250:7332")


def _leaf(folder: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificates((folder / "ca" / "portal.pem").read_bytes())[0]


def test_the_certificate_is_kept_while_it_is_good(tmp_path: Path) -> None:
    """SRV-2: the fingerprint a phone has seen stays until the address changes or the leaf is nearly over."""
    first = certificate(str(tmp_path), ADDRESS, NOW).fingerprint
    assert certificate(str(tmp_path), ADDRESS, NOW).fingerprint == first
    soon = NOW + dt.timedelta(days=LEAF_DAYS - RENEW_DAYS, seconds=-1)
    assert certificate(str(tmp_path), ADDRESS, soon).fingerprint == first
    assert certificate(str(tmp_path), ADDRESS, soon + dt.timedelta(seconds=1)).fingerprint != first
    second = certificate(str(tmp_path), ADDRESS, NOW).fingerprint
    assert certificate(str(tmp_path), "192.0.2.78", NOW).fingerprint != second
    (tmp_path / "ca" / "portal.pem").write_text("torn")
    assert certificate(str(tmp_path), ADDRESS, NOW).fingerprint


def test_it_is_good_for_one_address_and_its_keys_are_private(tmp_path: Path) -> None:
    """SRV-2: the leaf names the address alone, and a critical constraint holds the authority to it."""
    found = certificate(str(tmp_path), ADDRESS, NOW)
    leaf = _leaf(tmp_path)
    digest = sha256(leaf.public_bytes(serialization.Encoding.DER)).hexdigest().upper()
    assert found.fingerprint.replace(":", "") == digest
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(name.value) for name in names] == [ADDRESS]
    authority = x509.load_pem_x509_certificate((tmp_path / "ca" / "ca.pem").read_bytes())
    leaf.verify_directly_issued_by(authority)
    constraints = authority.extensions.get_extension_for_class(x509.NameConstraints)
    assert constraints.critical
    assert [str(name.value) for name in constraints.value.permitted_subtrees or ()] == [f"{ADDRESS}/32"]
    for name in os.listdir(tmp_path / "ca"):
        assert stat.S_IMODE(os.stat(tmp_path / "ca" / name).st_mode) == 0o600
    assert (tmp_path / "ca" / "portal.pem").read_bytes().count(b"PRIVATE KEY-----\n") == 2  # one key: begin and end
    assert b"PRIVATE" not in (tmp_path / "ca" / "ca.pem").read_bytes()


@pytest.fixture
def own_address() -> str:
    """An address of the network a test runs in that is not loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("203.0.113.1", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback")
        return str(sock.getsockname()[0])


def test_a_phone_is_paired_over_tls(tmp_path: Path, own_address: str) -> None:
    """SRV-2: the QR code leads to the TLS door, its code gives a token there, and revoking shuts the phone out."""
    with socket.socket() as free:
        free.bind((own_address, 0))
        port = free.getsockname()[1]
    with Whole(tmp_path, listen=f"{own_address}:{port}") as whole:
        paired = whole.send("POST", "/api/pair", {"name": "my phone", "role": "viewer"}).json
        assert paired["url"].startswith(f"https://{own_address}:{port}/#code=")
        assert "<svg" in paired["svg"]
        context = ssl.create_default_context(cafile=os.path.join(whole.state, "ca", "ca.pem"))  # noqa: TID251

        def ask(method: str, path: str, body: str | None = None, **headers: str) -> tuple[int, dict[str, object]]:
            connection = http.client.HTTPSConnection(own_address, port, context=context, timeout=60)
            connection.connect()
            shown = connection.sock.getpeercert(binary_form=True)
            assert sha256(shown).hexdigest().upper() == paired["fingerprint"].replace(":", "")
            connection.request(method, path, body, {"Content-Type": "application/json"} | headers)
            answer = connection.getresponse()
            found = answer.status, json.loads(answer.read())
            connection.close()
            return found

        assert ask("GET", "/api/health")[0] == 401
        status, session = ask("POST", "/api/session", json.dumps({"code": paired["url"].partition("=")[2]}))
        assert (status, session["role"]) == (201, "viewer")
        bearer = {"Authorization": f"Bearer {session['token']}"}
        assert ask("GET", "/api/health", **bearer)[0] == 200
        assert ask("GET", "/api/health", **bearer, Host=f"localhost:{whole.port}")[0] == 421
        assert [token["name"] for token in whole.get("/api/tokens")["tokens"]] == ["my phone 1"]
        assert whole.send("DELETE", f"/api/tokens/{session['id']}").status == 200
        assert ask("GET", "/api/health", **bearer)[0] == 401
