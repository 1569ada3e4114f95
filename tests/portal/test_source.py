"""Rules that the portal's files keep: nothing from elsewhere, nothing inline, no text that becomes markup (SRV-3)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.product import REPOSITORY

PORTAL = REPOSITORY / "src" / "tidegate" / "server" / "portal"
FILES = sorted(path for path in PORTAL.rglob("*") if path.is_file())
MODULES = [path for path in FILES if path.suffix == ".js"]
NAMESPACES = ("http://www.w3.org/2000/svg",)
FORBIDDEN = {
    r"\.(inner|outer)HTML\b|insertAdjacentHTML|document\.write|DOMParser": "text becomes markup",
    r"\beval\s*\(|new Function\b": "text becomes a program",
    r"""setAttribute\(\s*["'](style|on)""": "style and handlers by attribute, which the content policy refuses",
    r"document\.cookie": "a cookie",
}


def test_there_are_files() -> None:
    """The lists below are not empty."""
    assert PORTAL / "index.html" in FILES
    assert len(MODULES) > 10


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_nothing_comes_from_elsewhere(path: Path) -> None:
    """SRV-3: no file names another origin."""
    text = path.read_text()
    for name in NAMESPACES:
        text = text.replace(name, "")
    assert re.findall(r"(?:https?:)?//[a-z0-9][\w.-]*\.[a-z]{2,}", text) == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_modules(path: Path) -> None:
    """Each says what it is for, imports what is there, is short, and has none of what is forbidden."""
    text = path.read_text()
    assert text.startswith("/**")
    assert len(text.splitlines()) <= 200
    for wanted in re.findall(r"""from\s+["']([^"']+)["']""", text):
        assert wanted.startswith("./")
        assert (path.parent / wanted).is_file(), wanted
    for pattern, what in FORBIDDEN.items():
        assert re.findall(pattern, text) == [], what


def test_the_page_has_nothing_inline() -> None:
    """SRV-3: the content policy allows no script, style or handler in the page itself."""
    text = (PORTAL / "index.html").read_text()
    assert re.findall(r"<style|\sstyle=|\son\w+=", text) == []
    assert re.findall(r"<script(?![^>]*\bsrc=)", text) == []


def test_exports_are_used() -> None:
    """No module offers what none takes."""
    texts = {path.name: path.read_text() for path in MODULES}
    for name, text in texts.items():
        for export in re.findall(r"export (?:async )?(?:function|const|class) (\w+)", text):
            others = "".join(other for file, other in texts.items() if file != name)
            assert re.search(rf"\b{export}\b", others), f"{name}: {export}"
