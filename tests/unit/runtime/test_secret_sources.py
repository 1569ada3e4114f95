"""Values from where they are kept, and what a task has in their place."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import urllib.parse
from typing import TYPE_CHECKING

import pytest

from tidegate.inspect.placeholder import MOST
from tidegate.model.errors import StartError
from tidegate.runtime import secret_sources, secret_store
from tidegate.runtime.secret_sources import open_secrets, source_of, value_of
from tidegate.runtime.secret_store import Stored

if TYPE_CHECKING:
    from pathlib import Path

VALUE = "ghp_RealRealRealReal0001"
PRINTS = (sys.executable, "-c", f"print({VALUE!r})")


def stored(source: str, *origin: str) -> Stored:
    """A secret from some source."""
    return Stored("TOKEN", (("a.test", 443),), "bearer", "", "TOKEN", source, origin)


def test_each_source_gives_its_value(tmp_path: Path) -> None:
    """INS-5: a variable, a file, a command; a newline at the end is no part of it."""
    (tmp_path / "token").write_text(f"{VALUE}\n")
    for one in (stored("env", "MINE"), stored("file", str(tmp_path / "token")), stored("command", *PRINTS)):
        assert value_of(one, str(tmp_path), {"MINE": VALUE}) == VALUE.encode()
        assert VALUE not in source_of(one)
    sealed = secret_store.seal(str(tmp_path), stored("sealed"), VALUE.encode())
    assert value_of(sealed, str(tmp_path), {}) == VALUE.encode()


def test_a_credential_of_systemd(tmp_path: Path) -> None:
    """INS-5, systemd.exec(5): by its name below $CREDENTIALS_DIRECTORY; without that it says what sets it."""
    (tmp_path / "token").write_text(VALUE)
    one, there = stored("credential", "token"), {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    assert value_of(one, str(tmp_path), there) == VALUE.encode()
    assert (source_of(one), one.file(there)) == ("the credential token", str(tmp_path / "token"))
    with pytest.raises(StartError, match="CREDENTIALS_DIRECTORY is not set: systemd sets it"):
        value_of(one, str(tmp_path), {})
    with pytest.raises(StartError, match="no such file"):
        value_of(stored("credential", "other"), str(tmp_path), there)


def test_an_entry_of_a_keyring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """INS-5: of a real backend, by the package's own program, which imports nothing of the folder it is started in."""
    pytest.importorskip("keyring", reason="the package keyring is not installed")
    pytest.importorskip("keyrings.alt", reason="no keyring without a desktop is installed")
    data = {"XDG_DATA_HOME": str(tmp_path), "PYTHON_KEYRING_BACKEND": "keyrings.alt.file.PlaintextKeyring"}
    environ = {**os.environ, **data}
    put = [sys.executable, "-m", "keyring", "set", "a.test", "me"]
    subprocess.run(put, input=VALUE, text=True, env=environ, check=True, timeout=60)
    (tmp_path / "keyring.py").write_text("raise SystemExit('the folder was imported')\n")
    monkeypatch.chdir(tmp_path)
    one = stored("keyring", "a.test", "me")
    assert value_of(one, str(tmp_path), environ) == VALUE.encode()
    assert source_of(one) == "the keyring's entry of me for a.test"
    with pytest.raises(StartError, match=r"for a\.test: it ended with status 1"):
        value_of(stored("keyring", "a.test", "you"), str(tmp_path), environ)
    monkeypatch.setattr(secret_sources, "find_spec", lambda _name: None)
    with pytest.raises(StartError, match="the package that reads the desktop's keyring") as caught:
        value_of(one, str(tmp_path), environ)
    assert "pip install keyring" in caught.value.fix


@pytest.mark.parametrize(
    ("one", "says"),
    [
        (stored("env", "NOT_THERE"), "the variable NOT_THERE: it is not set here"),
        (stored("file", "/nonexistent/token"), "no such file"),
        (stored("command", "/nonexistent/program"), "no such file"),
        (stored("command", sys.executable, "-c", f"print({VALUE!r}); raise SystemExit(3)"), "ended with status 3"),
        (stored("command", sys.executable, "-c", ""), "it gives nothing"),
    ],
)
def test_a_source_without_a_value_is_one_line(tmp_path: Path, one: Stored, says: str) -> None:
    """INS-5: what and where, and never what a command printed."""
    with pytest.raises(StartError, match=says) as caught:
        value_of(one, str(tmp_path), {})
    assert VALUE not in str(caught.value)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """INS-5: one that nobody writes to would hold up a start without end; a file that is too long is no value."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StartError, match="it is no regular file: --from-command -- cat"):
        value_of(stored("file", str(tmp_path / "pipe")), str(tmp_path), {})
    (tmp_path / "long").write_text("a" * 100_000)
    assert len(value_of(stored("file", str(tmp_path / "long")), str(tmp_path), {})) == MOST + 2


def test_variables_that_hold_the_value_are_covered(tmp_path: Path) -> None:
    """INS-5: the caller's own too, wherever in them it is; others are not touched."""
    secret_store.save(str(tmp_path), stored("env", "MINE"))
    environ = {"MINE": VALUE, "URL": f"https://u:{VALUE}@a.test/", "OTHER": "x"}
    vault, variables = open_secrets(str(tmp_path), ["TOKEN"], environ)
    made = variables["TOKEN"]
    assert (len(made), made != VALUE, made[:4]) == (len(VALUE), True, "ghp_")
    assert variables == {"TOKEN": made, "MINE": made, "URL": f"https://u:{made}@a.test/"}
    assert vault.hosts == ("a.test",)
    sent = vault.swap("a.test", 443, b"/", [(b"Authorization", f"Bearer {made}".encode())], tls=True)
    assert sent == (b"/", [(b"Authorization", f"Bearer {VALUE}".encode())])
    again = open_secrets(str(tmp_path), ["TOKEN"], environ)[1]["TOKEN"]
    assert again != made


def test_variables_that_hold_the_value_in_another_form_are_covered(tmp_path: Path) -> None:
    """INS-5, B119: a registry's `_auth` is base64, a URL has it percent-encoded; bytes that are no text stay."""
    value = "p4ss+w0rd/abc=&1"
    secret_store.save(str(tmp_path), stored("env", "MINE"))
    environ = {
        "MINE": value,
        "AUTH": base64.b64encode(f"user:{value}".encode()).decode(),
        "URL": f"https://u:{urllib.parse.quote(value, safe='')}@a.test/",
        "JSON": json.dumps({"key": value}),
        "BYTES": f"\udcff{value}\udcfe",
        "OTHER": "\udcff",
    }
    _vault, variables = open_secrets(str(tmp_path), ["TOKEN"], environ)
    stands = variables["TOKEN"]
    assert base64.b64decode(variables["AUTH"]).startswith(b"user:")
    assert base64.b64decode(variables["AUTH"])[5:-1] == stands.encode()[:-1]
    assert urllib.parse.unquote(variables["URL"]) == f"https://u:{stands}@a.test/"
    assert json.loads(variables["JSON"]) == {"key": stands}
    assert variables["BYTES"] == f"\udcff{stands}\udcfe"
    assert "OTHER" not in variables


def test_a_value_that_nothing_can_stand_for(tmp_path: Path) -> None:
    """INS-5: said without repeating it."""
    secret_store.save(str(tmp_path), stored("env", "MINE"))
    with pytest.raises(StartError, match="the secret TOKEN cannot be used") as caught:
        open_secrets(str(tmp_path), ["TOKEN"], {"MINE": "pässwörd"})
    assert "pässwörd" not in str(caught.value)


def test_a_secret_may_be_called_like_the_variable_of_a_key(tmp_path: Path) -> None:
    """INS-5, INS-8: each has a stand-in of its own, whatever their names are."""
    named = Stored("API_KEY", (("a.test", 443),), "bearer", "", "OTHER", "env", ("MINE",))
    secret_store.save(str(tmp_path), named)
    key = Stored("API_KEY", (("b.test", 443),), "bearer", "", "API_KEY", "env", ("API_KEY",))
    environ = {"MINE": VALUE, "API_KEY": VALUE[::-1] + "more"}
    kept: dict[str, str] = {}
    _vault, variables = open_secrets(str(tmp_path), ["API_KEY"], environ, kept, [key])
    assert len(set(kept.values())) == 2
    assert (len(variables["OTHER"]), len(variables["API_KEY"])) == (len(VALUE), len(VALUE) + 4)
