"""tidegate.cli.main."""

from __future__ import annotations

import pytest

from tidegate import __version__
from tidegate.cli.main import main


def test_version_and_help_go_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    """What was asked for is the output, not an error."""
    assert main(["--version"]) == 0
    assert main(["--help"]) == 0
    out = capsys.readouterr()
    assert out.out.startswith(f"tidegate {__version__}\n")
    assert "run [options]" in out.out
    assert out.err == ""


@pytest.mark.parametrize("argv", [[], ["rum"], ["run"], ["run", "--bogus", "true"]])
def test_a_usage_error_is_exit_2_and_says_what_to_write(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """HLD-16: 2 is usage or policy text; no traceback ever."""
    assert main(argv) == 2
    err = capsys.readouterr().err
    assert "Traceback" not in err
    assert err
