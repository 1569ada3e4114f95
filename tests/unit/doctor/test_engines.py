"""engines.py: rows of the engines (tests/holds/test_attach.py has them with the real ones)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.doctor.check import WARN
from tidegate.doctor.engines import check_engines

if TYPE_CHECKING:
    from pathlib import Path


def test_without_an_engine_there_is_no_row(tmp_path: Path) -> None:
    """A machine without docker and podman is not told about them (SRV-5)."""
    assert check_engines({"PATH": str(tmp_path)}) == []


def test_an_engine_that_does_not_answer_is_a_warning(tmp_path: Path) -> None:
    """The row names what is wrong and the fix; the other holds do without it (SRV-5, HLD-7)."""
    program = tmp_path / "docker"
    program.write_text("#!/bin/sh\necho 'Cannot connect to the Docker daemon at unix:///x' >&2; exit 1\n")
    program.chmod(0o755)
    (row,) = check_engines({"PATH": str(tmp_path)})
    assert (row.name, row.state) == ("hold docker", WARN)
    assert "cannot be reached" in row.what
    assert row.fix
