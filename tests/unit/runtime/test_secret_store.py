"""Secrets on the disk: named or sealed, private, and bound to what they are for."""

from __future__ import annotations

import functools
import json
import os
from typing import TYPE_CHECKING

import pytest

from tests.at_once import at_once
from tidegate.model.errors import StartError
from tidegate.runtime import secret_store
from tidegate.runtime.secret_store import Stored

if TYPE_CHECKING:
    from pathlib import Path

VALUE = b"ghp_RealRealRealReal0001"
TOKEN = Stored("TOKEN", (("a.test", 443),), "bearer", "", "TOKEN", "sealed")


def kept(state: Path, secret: Stored = TOKEN) -> Path:
    """Seal and save one; return its file."""
    secret_store.save(str(state), secret_store.seal(str(state), secret, VALUE))
    return state / "secrets" / f"{secret.name}.json"


def test_a_sealed_value_comes_back_and_is_in_no_file(tmp_path: Path) -> None:
    """INS-5, B119: 0600 in 0700, nothing of the value in it; forgotten it is gone."""
    state = tmp_path / "state"
    kept(state)
    found = secret_store.load(str(state), "TOKEN")
    assert secret_store.unseal(str(state), found) == VALUE
    files = [path for path in state.rglob("*") if path.is_file()]
    assert sorted(path.name for path in files) == ["TOKEN.json", "secrets"]
    assert [path.stat().st_mode & 0o777 for path in files] == [0o600, 0o600]
    assert [path for path in files if VALUE in path.read_bytes()] == []
    assert VALUE.decode() not in repr(found)
    assert secret_store.names(str(state)) == ["TOKEN"]
    assert secret_store.forget(str(state), "TOKEN")
    assert not secret_store.forget(str(state), "TOKEN")
    assert secret_store.names(str(state)) == []


@pytest.mark.parametrize(
    ("field", "other"),
    [("hosts", [["evil.test", 443]]), ("place", "query"), ("field", "x"), ("hosts", [["a.test", 80]])],
)
def test_a_seal_is_bound_to_what_it_is_for(tmp_path: Path, field: str, other: object) -> None:
    """INS-5: whoever changes the file cannot lead the value elsewhere; another variable is no other place."""
    path = kept(tmp_path / "state")
    told = json.loads(path.read_text())
    path.write_text(json.dumps(told | {field: other}))
    found = secret_store.load(str(tmp_path / "state"), "TOKEN")
    with pytest.raises(StartError, match="cannot be unsealed"):
        secret_store.unseal(str(tmp_path / "state"), found)
    path.write_text(json.dumps(told | {"variable": "OTHER"}))
    found = secret_store.load(str(tmp_path / "state"), "TOKEN")
    assert secret_store.unseal(str(tmp_path / "state"), found) == VALUE


def test_without_the_key_it_is_an_error(tmp_path: Path) -> None:
    """INS-5: one line that says what to do, and nothing is made up."""
    kept(tmp_path / "state")
    os.unlink(tmp_path / "state" / "keys" / "secrets")
    with pytest.raises(StartError, match="its key is gone"):
        secret_store.unseal(str(tmp_path / "state"), secret_store.load(str(tmp_path / "state"), "TOKEN"))


def test_secrets_that_are_set_at_once_can_all_be_unsealed(tmp_path: Path) -> None:
    """INS-5: the first commands of a person at the same time make one key; what each sealed is no loss later."""
    for number in range(30):
        state = tmp_path / str(number)
        at_once(*(functools.partial(kept, state, TOKEN.replace(name=name)) for name in "ABCD"))
        for name in "ABCD":
            assert secret_store.unseal(str(state), secret_store.load(str(state), name)) == VALUE


@pytest.mark.parametrize("spoil", ["open", "link", "text", "place"])
def test_a_file_that_is_not_ours_is_refused(tmp_path: Path, spoil: str) -> None:
    """INS-5: open to others, a symbolic link, no JSON, an unknown place."""
    path = kept(tmp_path / "state")
    if spoil == "open":
        path.chmod(0o644)
    elif spoil == "link":
        path.rename(tmp_path / "other.json")
        path.symlink_to(tmp_path / "other.json")
    elif spoil == "text":
        path.write_text("{")
    else:
        path.write_text(path.read_text().replace('"bearer"', '"cookie"'))
    with pytest.raises(StartError, match="cannot be read"):
        secret_store.load(str(tmp_path / "state"), "TOKEN")


def test_names_that_are_none(tmp_path: Path) -> None:
    """INS-5: no path in a name; an unknown one says how it is set; two for one variable are refused."""
    state = str(tmp_path / "state")
    for name in ("../keys/secrets", "", "A-B", "1A", "ä"):
        assert not secret_store.is_name(name)
        with pytest.raises(StartError, match="there is no secret"):
            secret_store.load(state, name)
    assert secret_store.is_name("_a1")
    for one in (TOKEN, TOKEN.replace(name="OTHER")):
        secret_store.save(state, one)
    with pytest.raises(StartError, match=r"are both for \$TOKEN"):
        secret_store.load_all(state, ["TOKEN", "OTHER"])
    secret_store.save(state, TOKEN.replace(name="OTHER", variable="OTHER"))
    assert [one.name for one in secret_store.load_all(state, ["TOKEN", "OTHER"])] == ["TOKEN", "OTHER"]


@pytest.mark.parametrize(
    ("key", "mode", "why"), [(b"short", 0o600, "it is no key"), (b"k" * 32, 0o644, "open to others")]
)
def test_a_key_that_cannot_be_used_is_named(tmp_path: Path, key: bytes, mode: int, why: str) -> None:
    """INS-5: nothing is sealed with it, and the line says which file it is and what to do; without it, it is good."""
    state = str(tmp_path / "state")
    secret = Stored("TOKEN", (("a.test", 443),), "bearer", "", "TOKEN", "sealed")
    secret_store.seal(state, secret, VALUE)
    path = tmp_path / "state" / "keys" / "secrets"
    path.write_bytes(key)
    path.chmod(mode)
    with pytest.raises(StartError, match=why) as caught:
        secret_store.seal(state, secret, VALUE)
    assert str(path) in caught.value.what
    assert "remove that file" in caught.value.fix
    path.unlink()
    assert secret_store.unseal(state, secret_store.seal(state, secret, VALUE)) == VALUE
