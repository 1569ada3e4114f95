"""What is written anew for containers of somebody else's launcher; with engines: tests/holds/test_secrets_held.py."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import trustme

from tidegate.cli.launcher import ROOTS, renewed
from tidegate.runtime.trust import BUNDLE, JAVA

if TYPE_CHECKING:
    from pathlib import Path


def attached(folder: Path, **variables: str) -> Any:
    """A container that was started with what is printed."""
    return SimpleNamespace(
        mounts={BUNDLE: f"{folder}/trust-0", JAVA: f"{folder}/trust-1", "/etc/x": "/etc/ssl/elsewhere"},
        variables={"SSL_CERT_FILE": BUNDLE, **variables},
    )


def test_another_authority_is_written_into_the_same_files(tmp_path: Path) -> None:
    """INS-2, HLD-8: the file that is mounted keeps its place on the disk, and has roots and the new authority."""
    folder = tmp_path / "tasks" / "t1"
    folder.mkdir(parents=True)
    roots, authority = (trustme.CA().cert_pem.bytes().decode() for _ in range(2))
    (folder / ROOTS).write_text(roots)
    for name in ("trust-0", "trust-1"):
        (folder / name).write_text("older and much longer" * 1000)
    before = (folder / "trust-0").stat().st_ino
    link: Any = SimpleNamespace(authority=(authority,), own=("TOKEN",), variables={"TOKEN": "stand-in"})
    assert renewed(attached(folder, TOKEN="stand-in"), str(tmp_path), "t1", link) == ""
    assert (folder / "trust-0").read_text() == roots + authority
    assert (folder / "trust-0").stat().st_ino == before


def test_what_a_container_was_started_without_is_one_line(tmp_path: Path) -> None:
    """HLD-4: neither bundle nor stand-in, or another one: it says so and what to do; nothing is written."""
    link: Any = SimpleNamespace(authority=("x",), own=("TOKEN",), variables={"TOKEN": "stand-in"})
    bare: Any = SimpleNamespace(mounts={}, variables={})
    said = renewed(bare, str(tmp_path), "t1", link)
    assert "was started without the files and variables" in said
    assert "$TOKEN" in said
    assert "--print-args" in said
    assert "\n" not in said
    nothing: Any = SimpleNamespace(authority=(), own=(), variables={})
    assert renewed(bare, str(tmp_path), "t1", nothing) == ""
