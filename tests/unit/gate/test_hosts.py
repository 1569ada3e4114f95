"""The hosts file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.gate.hosts import hosts_addresses

if TYPE_CHECKING:
    from pathlib import Path


def test_names_comments_case_and_families(tmp_path: Path) -> None:
    """ADR-4: /etc/hosts counts; comments do not, nor what is no address."""
    path = tmp_path / "hosts"
    path.write_text(
        "# 9.9.9.9 a.test\n1.2.3.4 A.test b.test # c.test\n::1%lo a.test\nnonsense a.test\n\n1.2.3.4 a.test\n5.6.7.8\n"
    )
    assert hosts_addresses("a.test", str(path)) == (b"\x01\x02\x03\x04", bytes(15) + b"\x01")
    assert hosts_addresses("b.test", str(path)) == (b"\x01\x02\x03\x04",)
    assert hosts_addresses("c.test", str(path)) == ()
    assert hosts_addresses("test", str(path)) == ()


def test_no_file_is_no_name(tmp_path: Path) -> None:
    """A machine without one has no names of its own."""
    assert hosts_addresses("a.test", str(tmp_path / "none")) == ()
