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


@pytest.mark.parametrize(
    ("word", "said"), [("evnets", "did you mean events?"), ("rum", "did you mean run?"), ("zzz", "see tidegate --help")]
)
def test_a_mistyped_command_names_the_nearest(word: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """HLD-16: as options and policy keys do; a word that is near to none leads to the list."""
    assert main([word]) == 2
    assert capsys.readouterr().err == f"tidegate: unknown command '{word}': {said}\n"


@pytest.mark.parametrize("argv", [[], ["rum"], ["run"], ["run", "--bogus", "true"]])
def test_a_usage_error_is_exit_2_and_says_what_to_write(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """HLD-16: 2 is usage or policy text; no traceback ever."""
    assert main(argv) == 2
    err = capsys.readouterr().err
    assert "Traceback" not in err
    assert err
