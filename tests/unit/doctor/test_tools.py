"""tidegate.doctor.tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.doctor.check import FAIL, OK, WARN
from tidegate.doctor.tools import check_tools

if TYPE_CHECKING:
    from pathlib import Path


def test_each_tool_is_a_row(tmp_path: Path) -> None:
    """SRV-5, SRV-6: a program that is missing warns, with where it is declared; a file that is wrong fails."""
    environ = {"XDG_CONFIG_HOME": str(tmp_path)}
    assert check_tools(environ) == []
    (tmp_path / "tidegate").mkdir(mode=0o700)
    file = tmp_path / "tidegate" / "tools.yaml"
    file.write_text(
        "tools:\n  here: {command: [/bin/true], description: x, hosts: [a.test]}\n"
        "  gone: {command: [/nowhere/x], description: x}\n"
    )
    file.chmod(0o600)
    here, gone = check_tools(environ)
    assert (here.name, here.state, here.what) == ("tool here", OK, "a.test")
    assert (gone.state, gone.what, gone.fix) == (WARN, "'/nowhere/x' is no file", f"install it, or change {file}:3:3")
    file.chmod(0o666)
    (row,) = check_tools(environ)
    assert (row.state, row.fix) == (FAIL, f"chmod go-w {file}")
