"""The generated part of docs/questions.md: what pip, npm, git and curl do when they meet a question.

Made from the rows of tests/clients/meeting.py, which the tests hold to be true. scripts/docs runs this;
tests/unit/test_questions_reference.py fails when the file is stale.
"""

from __future__ import annotations

import os
import sys

from scripts.page_parts import fill
from tests.clients.kit import CAPTURE, PROXY
from tests.clients.meeting import MEETINGS, Meeting

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(ROOT, "docs", "questions.md")


def _gives_up(row: Meeting) -> str:
    said = {way: row.gives_up[way].replace("|", "\\|") for way in (PROXY, CAPTURE)}
    if len(set(said.values())) == 1:
        return f"`{said[PROXY]}`" if said[PROXY] else "nothing, where it is ended from outside"
    return "<br>".join(f"{way}: `{text}`" for way, text in said.items())


def _table() -> str:
    head = "| client | waits by itself | prints meanwhile | when it gave up | its next try |\n|---|---|---|---|---|\n"
    rows = []
    for row in MEETINGS:
        meanwhile = "its first line only" if row.meanwhile else "nothing"
        cells = (f"{row.client.name} {row.client.tried}", row.alone, meanwhile, _gives_up(row), row.retry)
        rows.append(f"| {' | '.join(cells)} |")
    return head + "\n".join(rows)


BLOCKS = {"meetings": _table}


def main(arguments: list[str]) -> int:
    """Write the page, or with --check say whether it is fresh; return the exit status."""
    return fill(PAGE, BLOCKS, check=arguments == ["--check"])


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
