"""docs/clients.md against the tables that it is made from."""

from __future__ import annotations

import re

from scripts import clients_reference
from tests.clients.package_managers import PACKAGE_MANAGERS
from tests.clients.services import SERVICES
from tests.clients.table import CHROMIUM, FETCHERS
from tidegate.runtime.client_settings import SETTINGS

ROWS = (*FETCHERS, CHROMIUM, *PACKAGE_MANAGERS, *SERVICES)


def test_the_generated_parts_are_fresh() -> None:
    """The tables of the page are what tests/clients proves; scripts/docs writes them."""
    assert clients_reference.main(["--check"]) == 0, "run scripts/docs"


def test_the_table_of_settings_names_the_versions_that_are_tried() -> None:
    """GAT-10: for each tool in the table the version it was tried with, which is that of a row here."""
    versions: dict[str, set[str]] = {}
    for row in ROWS:
        for word in row.name.split():
            versions.setdefault(word, set()).add(row.tried)
    for variable, *_, tried in SETTINGS:
        named = re.findall(r"([A-Za-z]+) (\d[.\d]*)", tried)
        assert named
        for tool, version in named:
            assert version in versions[tool], f"{variable}: {tool} {version}"
