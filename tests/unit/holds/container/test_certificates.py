"""The authority for relays: what it keeps, what it signs, and who takes that for good."""

from __future__ import annotations

import datetime as dt
import os
import stat
import subprocess
from typing import TYPE_CHECKING

import pytest
from cryptography import x509

from tidegate.holds.container.certificates import FILE, FOLDER, TASK_LIFE, open_authority
from tidegate.model.errors import StartError

if TYPE_CHECKING:
    from pathlib import Path

NOW = dt.datetime.now(dt.UTC).timestamp()
DAY = 86400.0


def test_it_is_made_once_and_is_this_users_alone(tmp_path: Path) -> None:
    """HLD-4: in run/ca, 0600 in a folder of 0700; the next one who asks gets the same."""
    first = open_authority(str(tmp_path), NOW)
    file = tmp_path / FOLDER / FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert open_authority(str(tmp_path), NOW).pem == first.pem
    assert os.listdir(file.parent) == [FILE]


def test_a_task_has_seven_days_and_the_authority_ten_years(tmp_path: Path) -> None:
    """HLD-4: and a new authority comes before the old one is over."""
    authority = open_authority(str(tmp_path), NOW)
    keys = authority.task("20260101-000000-abcd", NOW)
    assert keys.ends_at == pytest.approx(NOW + TASK_LIFE, abs=1)
    later = open_authority(str(tmp_path), NOW + 3600 * DAY)
    assert later.pem == authority.pem
    assert open_authority(str(tmp_path), NOW + 3630 * DAY).pem != authority.pem


def verify(folder: Path, authority: bytes, leaf: bytes, purpose: str, at: float = NOW) -> bool:
    """Whether OpenSSL takes a certificate for good, as strictly as it can."""
    (folder / "ca.pem").write_bytes(authority)
    (folder / "leaf.pem").write_bytes(leaf)
    argv = ["openssl", "verify", "-x509_strict", "-purpose", purpose, "-attime", str(int(at))]
    argv += ["-CAfile", str(folder / "ca.pem"), str(folder / "leaf.pem")]
    return subprocess.run(argv, capture_output=True, check=False, timeout=60).returncode == 0


def test_openssl_takes_them_for_what_they_are_and_nothing_else(tmp_path: Path) -> None:
    """HLD-4, B103: a task's certificate is a client's, the listener's a server's; after seven days it is nothing."""
    authority = open_authority(str(tmp_path / "state"), NOW)
    task = authority.task("a", NOW).pem
    listener = authority.listener(NOW)
    assert verify(tmp_path, authority.pem, task, "sslclient")
    assert not verify(tmp_path, authority.pem, task, "sslserver")
    assert verify(tmp_path, authority.pem, listener, "sslserver")
    assert not verify(tmp_path, authority.pem, listener, "sslclient")
    assert verify(tmp_path, authority.pem, task, "sslclient", NOW - DAY / 2)  # a clock that lags
    assert not verify(tmp_path, authority.pem, task, "sslclient", NOW + TASK_LIFE + 60)
    other = open_authority(str(tmp_path / "other"), NOW)
    assert not verify(tmp_path, other.pem, task, "sslclient")


def test_two_tasks_share_nothing(tmp_path: Path) -> None:
    """GAT-2: neither key nor serial number nor fingerprint."""
    authority = open_authority(str(tmp_path), NOW)
    one, two = authority.task("a", NOW), authority.task("a", NOW)
    assert one.fingerprint != two.fingerprint
    certificates = [
        x509.load_pem_x509_certificate(keys.pem[keys.pem.index(b"-----BEGIN CERT") :]) for keys in (one, two)
    ]
    assert certificates[0].serial_number != certificates[1].serial_number
    assert certificates[0].public_key() != certificates[1].public_key()


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda file: file.chmod(0o640), "chmod 600"),
        (lambda file: file.parent.chmod(0o755), "chmod 700"),
        (lambda file: file.write_text("no key"), "move it away"),
        (lambda file: file.write_bytes(file.read_bytes()[:100]), "move it away"),
        (lambda file: (file.unlink(), file.symlink_to("/etc/hostname")), "cannot be used"),
    ],
)
def test_a_key_that_others_could_have_is_not_used(tmp_path: Path, spoil: object, says: str) -> None:
    """HLD-7: one line, exit 78; the neighbour, the same file as it was made, is above."""
    open_authority(str(tmp_path), NOW)
    assert callable(spoil)
    spoil(tmp_path / FOLDER / FILE)
    with pytest.raises(StartError) as caught:
        open_authority(str(tmp_path), NOW)
    assert says in str(caught.value)
    assert caught.value.exit_status == 78
