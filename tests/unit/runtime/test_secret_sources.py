"""Values from where they are kept, and what a task has in their place."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tidegate.model.errors import StartError
from tidegate.runtime import secret_store
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


@pytest.mark.parametrize(
    ("one", "says"),
    [
        (stored("env", "NOT_THERE"), "the variable NOT_THERE: it gives nothing"),
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


def test_a_value_that_nothing_can_stand_for(tmp_path: Path) -> None:
    """INS-5: said without repeating it."""
    secret_store.save(str(tmp_path), stored("env", "MINE"))
    with pytest.raises(StartError, match="the secret TOKEN cannot be used") as caught:
        open_secrets(str(tmp_path), ["TOKEN"], {"MINE": "pässwörd"})
    assert "pässwörd" not in str(caught.value)
