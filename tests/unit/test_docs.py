"""The pages of the documentation: every link inside the repository leads somewhere; the index of decisions is whole."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("bench/*.md"), *ROOT.glob("docs/**/*.md")])
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"#+ (.+)")


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    found: set[str] = set()
    code = False
    for line in page.read_text(encoding="utf-8").splitlines():
        code ^= line.startswith("```")
        heading = _HEADING.fullmatch(line)
        if heading and not code:
            plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading[1])
            found.add(re.sub(r"[^\w -]", "", plain.lower()).replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """A page that was moved, or a heading that was worded anew, takes the links to it along."""
    for link in _LINK.findall(page.read_text(encoding="utf-8")):
        if link.startswith(("https://", "http://")):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_the_index_of_decisions_is_whole() -> None:
    """Each decision is in docs/decisions/README.md, by a number of its own and its title; a number may be left out."""
    folder = ROOT / "docs" / "decisions"
    wanted = []
    last = ""
    for page in sorted(folder.glob("0*.md")):
        assert page.name[:4] != last, f"{page.name}: this number is another decision's"
        last = page.name[:4]
        heading = page.read_text(encoding="utf-8").split("\n", 1)[0]
        number, title = heading.removeprefix("# ").split(". ", 1)
        assert int(page.name[:4]) == int(number)
        wanted.append(f"{number}. [{title}]({page.name})")
    index = (folder / "README.md").read_text(encoding="utf-8")
    assert [line for line in index.splitlines() if line[:1].isdigit()] == wanted
