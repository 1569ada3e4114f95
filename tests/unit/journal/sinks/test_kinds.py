"""tidegate.journal.sinks.kinds: the types of line that there are."""

from __future__ import annotations

import re

import pytest

from tests.product import REPOSITORY
from tidegate.journal.sinks.kinds import FAMILIES, KINDS, check_kind
from tidegate.model.errors import UsageError

_WRITTEN = re.compile(rf"\"((?:{'|'.join(sorted(one.removesuffix('.*') for one in FAMILIES))})\.[a-z-]+)\"")
_NO_TYPES = {"net.connection", "net.connect"}  # of a task's own journal; a verdict of another product
_FILES = {"json", "pem", "xml", "html", "yaml"}
_QUESTIONS = {"question.expired", "question.ended"}  # put together where they are written


def test_every_type_in_the_source_is_known() -> None:
    """JRN-6: a new type of line can be sent by name, and one that is written no more cannot."""
    sources = (REPOSITORY / "src" / "tidegate").rglob("*.py")
    texts = [path.read_text() for path in sources if path.name != "kinds.py"]
    found = {kind for text in texts for kind in _WRITTEN.findall(text) if kind.partition(".")[2] not in _FILES}
    assert (found - _NO_TYPES) | _QUESTIONS == KINDS


def test_every_type_is_in_the_docs() -> None:
    """JRN-6: whoever filters can read what there is."""
    said = (REPOSITORY / "docs" / "action-log.md").read_text()
    assert [kind for kind in sorted(KINDS) if f"`{kind}`" not in said] == []


@pytest.mark.parametrize("kind", ["net.blocked", "task.*", "sink.gap"])
def test_a_type_or_a_family_passes(kind: str) -> None:
    """JRN-6: the neighbours of the next test."""
    check_kind(kind)


@pytest.mark.parametrize(
    ("kind", "fix"),
    [
        ("net.block", "did you mean net.blocked?"),
        ("tasks.*", "did you mean task.*?"),
        ("net", "did you mean net.*?"),
        ("*", "such as net.blocked, or task.*; docs/action-log.md lists them"),
        ("x" * 100_000, "such as net.blocked, or task.*; docs/action-log.md lists them"),
        ("", "such as net.blocked, or task.*; docs/action-log.md lists them"),
    ],
)
def test_a_type_that_no_line_has_is_refused(kind: str, fix: str) -> None:
    """JRN-6: it would leave out everything in silence, and the sink would be up to date."""
    with pytest.raises(UsageError) as raised:
        check_kind(kind)
    assert raised.value.fix == fix
