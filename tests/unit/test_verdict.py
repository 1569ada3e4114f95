"""scripts/verdict.py: which failures get a second look, and the last lines of a run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VERDICT = ROOT / "scripts" / "verdict.py"
SUITE = """
import os
import pytest

class TestGroup:
    @pytest.mark.xdist_group("one")
    @pytest.mark.parametrize("text", ["a b", "x/y::z@q", "it's", "[0]@g"])
    def test_in_a_group(self, text):
        assert "FIRST" not in os.environ

def test_passes():
    pass

def test_skipped():
    pytest.skip("not here")
"""


def run_pytest(folder: Path, report: str, *arguments: str, first: bool) -> Path:
    """Run the little suite with xdist's groups, as scripts/test does, or what is named alone."""
    made = folder / report
    settings = ["-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-o", "junit_family=xunit1"]
    command = [sys.executable, "-m", "pytest", *settings, f"--junitxml={made}", f"--rootdir={folder}", *arguments]
    environment = {"PATH": "/usr/bin:/bin"} | ({"FIRST": "1"} if first else {})
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=120, check=False)
    return made


def ask(*arguments: object) -> tuple[int, list[str]]:
    """Return what it says."""
    command = [sys.executable, "-I", str(VERDICT), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout.splitlines()


def report(folder: Path, name: str, *cases: str) -> Path:
    """Write a report with these cases."""
    made = folder / name
    made.write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
    return made


def case(file: str, name: str, inside: str = "") -> str:
    """One test of a report."""
    module = file.removesuffix(".py").replace("/", ".")
    return f'<testcase classname="{module}" name="{name}" file="{file}">{inside}</testcase>'


def test_what_failed_in_a_group_is_run_again_by_its_name(tmp_path: Path) -> None:
    """The names are pytest's own, without xdist's group, whatever a parameter has in it; the sum names them."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_it.py").write_text(SUITE)
    first = run_pytest(tmp_path, "lab.xml", "-n2", "--dist", "loadgroup", first=True)
    status, names = ask("look-again", first)
    assert status == 0
    assert len(names) == 4
    again = run_pytest(tmp_path, "lab-again.xml", *names, first=False)
    unsteady = [f"scripts/test: failed beside others, passed alone: {name}" for name in names]
    assert ask("sum", 0, again, first) == (0, [*unsteady, "5 passed, 0 failed, 1 skipped"])
    still = run_pytest(tmp_path, "lab-again.xml", *names, first=True)
    assert ask("sum", 1, still, first) == (0, ["1 passed, 4 failed, 1 skipped"])


@pytest.mark.parametrize(
    ("files", "looks"),
    [
        (["tests/unit/test_a.py"] * 5, 0),
        (["tests/unit/test_a.py"] * 6, 1),
        (["tests/unit/test_a.py", "tests/holds/escapes/test_table.py"], 1),
        (["tests/fuzz/test_dns.py"], 1),
        (["tests/holds/test_conformance.py"], 0),
        ([], 1),
    ],
)
def test_who_gets_a_second_look(tmp_path: Path, files: list[str], looks: int) -> None:
    """Five failures at most, and none in the table of escapes or in the fuzz tests."""
    failed = [case(file, f"test_{number}", "<failure/>") for number, file in enumerate(files)]
    made = report(tmp_path, "lab.xml", case("tests/unit/test_b.py", "test_good"), *failed)
    assert ask("look-again", made)[0] == looks


def test_no_second_look_without_a_report_or_a_name(tmp_path: Path) -> None:
    """A run that wrote none, or a worker that died (its case has no file), is not excused."""
    assert ask("look-again", tmp_path / "none.xml")[0] == 1
    died = '<testcase classname="" name="tests/unit/test_a.py"><error/></testcase>'
    assert ask("look-again", report(tmp_path, "lab.xml", died))[0] == 1


def test_a_second_look_that_skips_is_no_pass(tmp_path: Path) -> None:
    """Only a test that ran and passed is taken off the failures; an error in the tear-down counts once."""
    first = report(
        tmp_path,
        "lab.xml",
        case("tests/unit/test_a.py", "test_a", "<failure/>"),
        case("tests/unit/test_a.py", "test_a", "<error/>"),
    )
    again = report(tmp_path, "lab-again.xml", case("tests/unit/test_a.py", "test_a", "<skipped/>"))
    assert ask("sum", 0, first, again)[1] == ["0 passed, 1 failed, 0 skipped"]


def test_a_run_that_failed_without_a_test_says_so(tmp_path: Path) -> None:
    """The checks, or a run that was cut off, fail the run in words too."""
    made = report(tmp_path, "lab.xml", case("tests/unit/test_a.py", "test_a"))
    assert ask("sum", 1, made)[1] == [
        "scripts/test: no test failed, but the checks or a test run did: see above",
        "1 passed, 0 failed, 0 skipped",
    ]
