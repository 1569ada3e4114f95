"""tidegate.runtime.suffix_list."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tidegate.model.errors import TidegateError
from tidegate.runtime import suffix_list

if TYPE_CHECKING:
    from pathlib import Path


def test_the_list_of_this_machine() -> None:
    """JRN-7: the distribution's list says what everybody's does."""
    if not any(map(os.path.exists, suffix_list.PLACES)):
        pytest.skip("no list of public suffixes here: apt install publicsuffix")
    found = suffix_list.load_suffixes("a test")
    assert found.domain_of("a.b.co.uk") == "b.co.uk"
    assert found.is_public("github.io")
    assert found.wildcard_domain("cdn.example.com") == "example.com"


def test_where_there_is_none_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JRN-7: without a list nothing is guessed; the first that there is counts."""
    empty, other = tmp_path / "empty", tmp_path / "list"
    empty.write_text("// nothing\n")
    monkeypatch.setattr(suffix_list, "PLACES", (str(tmp_path / "none"), str(empty)))
    with pytest.raises(TidegateError, match=r"--group needs the list of public suffixes.*apt install publicsuffix"):
        suffix_list.load_suffixes("--group")
    other.write_text("com\n")
    monkeypatch.setattr(suffix_list, "PLACES", (str(empty), str(other)))
    assert suffix_list.load_suffixes("--group").domain_of("a.b.com") == "b.com"


def test_without_the_suffixes_of_companies() -> None:
    """POL-15: `github.io` is a company's; `co.uk`, a wildcard's and an unknown top level are registries'."""
    if not any(map(os.path.exists, suffix_list.PLACES)):
        pytest.skip("no list of public suffixes here: apt install publicsuffix")
    found = suffix_list.load_suffixes("a test", companies=False)
    public = ("com", "co.uk", "xn--p1ai", "foo.ck", "localhost", "nothing-known")
    assert all(found.is_public(name) for name in public)
    assert not any(found.is_public(name) for name in ("github.io", "githubusercontent.com", "www.ck", "example.com"))
