"""tidegate.server.units: what systemd itself says of them."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tidegate.model.errors import UsageError
from tidegate.server.units import KINDS, quoted, unit

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("folder", ["plain", "a b 50% $HOME %h"])
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
def test_systemd_reads_them(tmp_path: Path, kind: str, folder: str) -> None:
    """SRV-5: no unknown option, and the program is found, whatever its path is made of."""
    program = tmp_path / folder / "tidegate"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    path = tmp_path / ("tidegate.service" if kind == "user" else "tidegate@.service")

    def verify() -> str:
        done = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", str(path)],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return "\n".join(line for line in done.stderr.splitlines() if "tidegate" in line)

    path.write_text(unit(kind, str(program), state_home="/var/x y"))
    assert verify() == ""
    path.write_text(unit(kind, f"{program}-missing"))  # it does look
    assert "is not executable" in verify()


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_in_them_parts_the_server_from_its_fronts(kind: str) -> None:
    """HLD-15, SRV-1: the server stays in the user and PID namespaces of those who run tasks, and sees their files."""
    text = unit(kind, "/opt/tidegate/tidegate")
    for option in ("PrivateUsers", "PrivatePIDs", "PrivateTmp", "PrivateNetwork", "ProtectHome", "DynamicUser"):
        assert f"{option}=" not in text
    assert 'ExecStart="/opt/tidegate/tidegate" serve\n' in text
    # In a user's manager each of these would make a user namespace.
    assert ("Protect" in text) == (kind == "system")


def test_a_word_is_quoted_whole() -> None:
    """Nothing of a path is a specifier or the end of a line."""
    assert quoted('/a b/%h/$X/"\\\n') == '"/a b/%%h/$X/\\"\\\\\\n"'


@pytest.mark.parametrize("path", ['/a"b', "/a'b", "/a\\b", "/a\nb"])
def test_a_path_that_systemd_runs_nothing_from_is_refused(path: str) -> None:
    """One line and what to do, not a unit that fails when it is started."""
    with pytest.raises(UsageError, match="systemd runs no program"):
        unit("user", path)
