"""The generated part of docs/clients.md: which client was tried in which version, and what it prints when refused.

Made from the rows of tests/clients, which the tests hold to be true word for word. scripts/docs runs this;
tests/unit/test_clients_reference.py fails when the file is stale.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from scripts.page_parts import fill
from tests.clients.kit import CAPTURE, PROXY, Client, Words
from tests.clients.package_managers import PACKAGE_MANAGERS
from tests.clients.publishers import PUBLISHERS
from tests.clients.services import SERVICES
from tests.clients.table import CHROMIUM, FETCHERS

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(ROOT, "docs", "clients.md")


def _shown(words: Words, why: str = "HOST:PORT: why; to allow it: --allow HOST:PORT") -> str:
    lines = [line.strip().replace("{host}", "HOST").replace("{port}", "PORT") for line in words.lines]
    text = " ⏎ ".join(line.replace("{why}", why) for line in lines)
    return f"`{text.replace('|', chr(92) + '|')}` ({words.status})"


def _cell(row: Client, way: str) -> str:
    if way == PROXY and row.alone is not None:
        return f"knows no proxy: {_shown(row.alone)}"
    said: dict[str, list[str]] = {}
    for (one, scheme), words in row.refused.items():
        if one == way:
            said.setdefault(_shown(words), []).append(scheme)
    if len(said) == 1:
        return next(iter(said))
    return "<br>".join(f"{', '.join(schemes)}: {text}" for text, schemes in said.items())


def _table(rows: Iterable[Client]) -> str:
    head = "| client | tried | refused by proxy | refused by capture |\n|---|---|---|---|\n"
    return (
        head + "".join(f"| {row.name} | {row.tried} | {_cell(row, PROXY)} | {_cell(row, CAPTURE)} |\n" for row in rows)
    ).rstrip()


def _publishers() -> str:
    head = "| command | tried | its publish is refused inside TLS |\n|---|---|---|\n"
    rows = [(one.client, one.client.refused[PROXY, "https"]) for one in PUBLISHERS]
    return (
        head + "".join(f"| {row.name} | {row.tried} | {_shown(words, 'HOST:PORT: why')} |\n" for row, words in rows)
    ).rstrip()


BLOCKS = {
    "fetchers": lambda: _table((*FETCHERS, CHROMIUM)),
    "managers": lambda: _table(PACKAGE_MANAGERS),
    "publishers": _publishers,
    "services": lambda: _table(SERVICES),
}


def main(arguments: list[str]) -> int:
    """Write the page, or with --check say whether it is fresh; return the exit status."""
    return fill(PAGE, BLOCKS, check=arguments == ["--check"])


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
