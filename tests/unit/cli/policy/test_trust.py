"""tidegate.cli.policy.trust."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.product import PATIENCE, Product
from tidegate.cli.group import run_click
from tidegate.model.errors import StartError, UsageError
from tidegate.runtime.folder_policy import FOLDER_FILE, known_trust

TEXT = "network: {runtime: {allow: [f.test]}}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a policy, in which the command is run."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / FOLDER_FILE).write_text(TEXT)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(folder)
    return folder


def trusted(folder: Path) -> bytes:
    """Return the bytes that are trusted in a folder."""
    known = known_trust(str(folder), str(folder.parent / "state" / "tidegate"))
    return b"" if known is None else known.text


def test_trust_says_what_it_lets_through_and_keeps_these_bytes(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """POL-9: what is looked at is what is trusted; a second time it says so."""
    assert run_click(["policy", "trust", "--yes"]) == 0
    assert "runtime: f.test: ask → allow" in capsys.readouterr().out
    assert trusted(folder) == TEXT.encode()
    assert run_click(["policy", "trust"]) == 0
    assert "is trusted already" in capsys.readouterr().out


def test_untrust_takes_it_back(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """POL-9: exit 0 where something was trusted, 1 where nothing was."""
    run_click(["policy", "trust", "--yes"])
    assert run_click(["policy", "untrust"]) == 0
    assert trusted(folder) == b""
    assert run_click(["policy", "untrust", str(folder)]) == 1
    assert "anyway" in capsys.readouterr().out


def test_nobody_is_asked_where_nobody_is(folder: Path) -> None:
    """POL-9: a pipe as standard input is no person."""
    with pytest.raises(UsageError, match="nobody is there to ask"):
        run_click(["policy", "trust"])
    assert trusted(folder) == b""


@pytest.mark.parametrize(("answer", "kept"), [(b"y\n", TEXT.encode()), (b"n\n", b""), (b"\n", b""), (b"\x04", b"")])
def test_a_person_at_a_terminal_is_asked(folder: Path, answer: bytes, kept: bytes) -> None:
    """POL-9: only a yes trusts."""
    ours, theirs = pty.openpty()
    program = "import sys; from tidegate.cli.main import main; sys.exit(main(sys.argv[1:]))"
    with subprocess.Popen(
        [sys.executable, "-c", program, "policy", "trust"], stdin=theirs, stdout=subprocess.PIPE, cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:  # fmt: skip
        os.close(theirs)
        os.write(ours, answer)
        out = process.communicate(timeout=PATIENCE)[0]
        os.close(ours)
    assert b"would newly let through" in out
    assert trusted(folder) == kept


def test_a_folder_without_a_policy_is_said(folder: Path) -> None:
    """POL-9: there is nothing to trust."""
    (folder / FOLDER_FILE).unlink()
    with pytest.raises(StartError, match=f"has no {FOLDER_FILE}"):
        run_click(["policy", "trust", "--yes"])
    with pytest.raises(StartError, match="cannot be used"):
        run_click(["policy", "trust", "--yes", "nowhere"])


def test_diff_alone_is_that_of_the_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """POL-9: exit 1 and what is new since the trusted bytes; nothing where they are the same."""
    assert run_click(["policy", "diff"]) == 1
    run_click(["policy", "trust", "--yes"])
    assert run_click(["policy", "diff"]) == 0
    (folder / FOLDER_FILE).write_text("network: {runtime: {allow: [f.test, g.test]}}\n")
    capsys.readouterr()
    assert run_click(["policy", "diff"]) == 1
    out = capsys.readouterr().out
    assert "g.test" in out
    assert "f.test:" not in out


@pytest.mark.parametrize("user", [False, True], ids=["root", "user"])
def test_a_task_that_rewrites_its_policy_gains_nothing(tmp_path: Path, isolated: None, *, user: bool) -> None:
    """POL-9: from inside neither this run nor the next has another policy: not by the file, not by `policy trust`."""
    assert isolated is None
    product = Product(tmp_path, user=user)
    file = product.folder / FOLDER_FILE
    file.write_text(TEXT)
    if product.user:
        os.chown(file, 12345, 12345)

    def policy(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            product.argv("policy", *words), cwd=product.folder, env=product.environment, capture_output=True,
            text=True, check=False, timeout=60,
        )  # fmt: skip

    assert policy("trust", "--yes").returncode == 0
    wider = "network: {runtime: {allow: ['**']}}"
    attempts = {
        "write": f'echo "{wider}" > {FOLDER_FILE}',
        "move": f"mv {FOLDER_FILE} old",
        "gone": f"rm -f {FOLDER_FILE}",
    }
    inside = "; ".join(f"{command}; echo {name} $?" for name, command in attempts.items())
    inside += f"; cat {FOLDER_FILE}; ls -A {product.state}"
    done = product.run("--", "sh", "-c", inside)
    said = done.stdout.splitlines()
    assert [line.split()[0] for line in said[:3]] == list(attempts)
    assert "0" not in {line.split()[1] for line in said[:3]}
    assert said[3:] == TEXT.splitlines(), "it reads its policy, and an empty folder where the trust is kept"
    assert file.read_text() == TEXT
    assert product.run("--", "true").returncode == 0
    file.write_text(wider + "\n")
    done = product.run("--", "true")
    assert done.returncode == 78
    assert "has changed since it was trusted" in done.stderr
    assert "deny → allow" in done.stderr
