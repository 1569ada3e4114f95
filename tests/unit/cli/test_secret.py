"""`tidegate secret`: values come in by the terminal, standard input or a reference, and never out."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import tidegate
from tests.product import PATIENCE
from tidegate.cli.main import main
from tidegate.runtime import secret_store

if TYPE_CHECKING:
    from pathlib import Path

VALUE = "ghp_RealRealRealReal0001"
SET = ("secret", "set", "TOKEN", "--host", "a.test")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A state folder of its own, and the value on standard input."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(f"{VALUE}\n".encode())))
    return str(tmp_path / "tidegate")


def test_it_is_set_listed_tested_and_forgotten(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    """INS-5: and no output has the value."""
    assert main([*SET, "--host", "[2001:db8::1]:8443", "--header", "X-Api-Key", "--env", "KEY"]) == 0
    assert main(["secret", "list"]) == 0
    assert main(["secret", "test", "TOKEN"]) == 0
    told = capsys.readouterr()
    assert "TOKEN · header X-Api-Key of a.test:443, [2001:db8::1]:8443 · in $KEY · from sealed here" in told.out
    assert "a task sees something like ghp_" in told.out
    assert VALUE not in told.out + told.err
    found = secret_store.load(state, "TOKEN")
    assert secret_store.unseal(state, found) == VALUE.encode()
    assert main(["secret", "forget", "TOKEN"]) == 0
    assert main(["secret", "forget", "TOKEN"]) == 2
    assert main(["secret", "test", "TOKEN"]) == 78


def test_a_file_that_cannot_be_read_hides_no_other(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    """INS-5: it is a line of its own."""
    assert main([*SET, "--from-env", "A"]) == 0
    assert main(["secret", "set", "BROKEN", "--host", "a.test", "--from-env", "A"]) == 0
    with open(f"{state}/secrets/BROKEN.json", "w", encoding="ascii") as file:
        file.write("{")
    assert main(["secret", "list"]) == 0
    told = capsys.readouterr()
    assert "TOKEN · bearer of a.test:443" in told.out
    assert "the secret 'BROKEN' cannot be read" in told.err


def test_a_field_of_a_body_is_a_place(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    """INS-5: named by the keys that lead to it."""
    assert main([*SET, "--body-field", "auth.client_secret", "--from-env", "A"]) == 0
    found = secret_store.load(state, "TOKEN")
    assert (found.place, found.field) == ("body-field", "auth.client_secret")
    assert "body-field auth.client_secret of a.test:443" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "source", "origin"),
    [
        (("--from-env", "MINE"), "env", ("MINE",)),
        (("--from-file", "/some/token"), "file", ("/some/token",)),
        (("--from-command", "--", "sh", "-c", "echo $X"), "command", ("-c", "echo $X")),
        (("--from-credential", "token"), "credential", ("token",)),
        (("--from-keyring", "a.test", "me"), "keyring", ("a.test", "me")),
    ],
)
def test_a_reference_is_all_that_is_kept(
    state: str, words: tuple[str, ...], source: str, origin: tuple[str, ...]
) -> None:
    """INS-5: the program of a command by its path as it is now; standard input is not read."""
    assert main([*SET, *words]) == 0
    found = secret_store.load(state, "TOKEN")
    assert (found.source, found.sealed, found.place) == (source, b"", "bearer")
    assert found.origin[-len(origin) :] == origin
    assert source != "command" or os.path.isabs(found.origin[0])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("secret", "set", "TOKEN"), "a secret needs a host"),
        (("secret", "set", "A-B", "--host", "a.test"), "is not a variable name"),
        (("secret", "set", "TOKEN", "--host", "*.a.test"), "--host '*.a.test'"),
        ((*SET, "--bearer", "--basic"), "a secret goes into one place"),
        ((*SET, "--query", "a", "--body-field", "b"), "a secret goes into one place"),
        ((*SET, "--from-credential", "../token"), "is not a credential name"),
        ((*SET, "--from-keyring", "a.test", "--help"), "a service and a user"),
        ((*SET, "--from-keyring", "a.test", "me", "--from-env", "A"), "a secret comes from one source"),
        ((*SET, "--header", "Host"), "the header Host is the gate's"),
        ((*SET, "--header", "Accept-Encoding"), "the header Accept-Encoding is the gate's"),
        ((*SET, "--header", "a b"), "is not a header name"),
        ((*SET, "--query", "a&b"), "is not a parameter name"),
        ((*SET, "--body-field", "a..b"), "'a..b' has an empty part between its dots: keys from the outermost on"),
        ((*SET, "--body-field", ".a"), "has an empty part between its dots"),
        ((*SET, "--body-field", "a."), "has an empty part between its dots"),
        ((*SET, "--body-field", "."), "has an empty part between its dots"),
        ((*SET, "--body-field", ""), "--body-field has an empty value: --body-field NAME"),
        ((*SET, "--query", ""), "--query has an empty value"),
        ((*SET, "--header", ""), "--header has an empty value"),
        ((*SET, "--env", ""), "--env has an empty value"),
        ((*SET, "--from-env", ""), "--from-env has an empty value"),
        ((*SET, "--from-file", ""), "--from-file has an empty value"),
        ((*SET, "--from-env", "A=B"), "is not a variable name"),
        ((*SET, "--from-env", "A", "--from-file", "b"), "a secret comes from one source"),
        ((*SET, "--from-command"), "the command comes after --"),
        ((*SET, "--", "sh"), "the command comes after --"),
        ((*SET, "--from-command", "--", "no-such-program"), "there is no program"),
    ],
)
def test_what_is_wrong_is_one_line(
    state: str, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str
) -> None:
    """INS-5: exit 2, and nothing is kept."""
    assert main(list(words)) == 2
    assert says in capsys.readouterr().err
    assert secret_store.names(state) == []


def test_a_value_that_cannot_be_used_is_not_kept(
    state: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """INS-5: too short to be told from chance."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"abc123\n")))
    assert main(list(SET)) == 78
    assert "abc123" not in capsys.readouterr().err
    assert secret_store.names(state) == []


def test_a_terminal_is_asked_without_echo(state: str) -> None:
    """INS-5: what is typed is not shown."""
    parent, child = pty.openpty()
    program = f"from tidegate.cli.main import main; raise SystemExit(main({list(SET)!r}))"
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(tidegate.__file__))},
        stdin=child, stdout=child, stderr=child, start_new_session=True,
    ) as done:  # fmt: skip
        os.close(child)
        shown = read_to(parent, b"not shown): ")
        os.write(parent, f"{VALUE}\n".encode())
        shown += read_to(parent, None)
        assert done.wait(PATIENCE) == 0, shown
    os.close(parent)
    assert VALUE.encode() not in shown
    assert secret_store.unseal(state, secret_store.load(state, "TOKEN")) == VALUE.encode()


def read_to(terminal: int, mark: bytes | None) -> bytes:
    """Read what is shown up to a mark, or to the end."""
    shown = b""
    while mark is None or mark not in shown:
        try:
            shown += os.read(terminal, 1000)
        except OSError:  # the other end is closed
            break
    return shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("PATH", "--host", "a.test"), "a task needs $PATH for something else"),
        (("T", "--host", "a.test", "--env", "LD_PRELOAD"), "a task needs $LD_PRELOAD for something else"),
        (("T", "--host", "a.test", "--env", "HTTP_PROXY"), "a task needs $HTTP_PROXY for something else"),
        (("T", "--host", "a.test", "--env", "SSL_CERT_FILE"), "a task needs $SSL_CERT_FILE for something else"),
        (("T", "--host", "https://a.test:8443/x"), "a secret is for a host, not a URL: --host a.test:8443"),
    ],
)
def test_what_cannot_work_is_said_when_it_is_set(
    state: str, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    """INS-5: a variable that a task starts or finds its gate by holds no stand-in; nothing is kept of either."""
    assert main(["secret", "set", *words, "--from-env", "A"]) == 2
    assert said in capsys.readouterr().err
    assert secret_store.names(state) == []


def test_an_empty_list_says_how_to_keep_one(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    """INS-5: on standard error, so that what reads the list has none; a variable that is not set is called that."""
    assert main(["secret", "list"]) == 0
    told = capsys.readouterr()
    assert (told.out, "tidegate secret set NAME --host HOST" in told.err) == ("", True)
    assert main([*SET, "--from-env", "NOT_SET_ANYWHERE"]) == 0
    assert main(["secret", "test", "TOKEN"]) == 78
    assert "the variable NOT_SET_ANYWHERE: it is not set here" in capsys.readouterr().err
    assert secret_store.names(state) == ["TOKEN"]


def test_a_file_that_all_can_read_is_said(state: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """INS-5: no task sees it, every other user of the machine does; its owner's own is not worth a word."""
    file = tmp_path / "token"
    file.write_text(VALUE)
    for mode, said in ((0o644, True), (0o602, True), (0o640, False), (0o600, False)):
        file.chmod(mode)
        assert main([*SET, "--from-file", str(file)]) == 0
        assert main(["secret", "test", "TOKEN"]) == 0
        told = capsys.readouterr()
        assert (told.err.count(f"can read or change {file}: chmod 600"), VALUE in told.err) == (2 * said, False)
    assert secret_store.names(state) == ["TOKEN"]
