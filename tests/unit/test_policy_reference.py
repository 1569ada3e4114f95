"""docs/policy.md against the code that it describes."""

from __future__ import annotations

import os
import re

import pytest

from scripts import policy_reference
from tidegate.cli.policy.expectations import read_expectations
from tidegate.model.rule import Layer
from tidegate.policy.expect import run_expectations
from tidegate.policy.layers import join
from tidegate.policy.loader import load_policy

with open(policy_reference.PAGE, encoding="utf-8") as file:
    PAGE = file.read()
SNIPPETS = dict(re.findall(r"```yaml\n# ([^\n]*)\n(.*?)```", PAGE, re.DOTALL))


def test_the_generated_parts_are_fresh() -> None:
    """The tables of the page are what the code says today; scripts/docs writes them."""
    assert policy_reference.main(["--check"]) == 0, "run scripts/docs"


@pytest.mark.parametrize("name", [name for name in SNIPPETS if name != "expectations"])
def test_each_policy_on_the_page_loads(name: str) -> None:
    """What a reader copies from the page is a policy."""
    assert join(load_policy(SNIPPETS[name].encode(), name, Layer.COMMAND_LINE)).rules


def test_the_expectations_on_the_page_hold() -> None:
    """The page's example for `policy test` passes against the page's first policy."""
    wanted = read_expectations(SNIPPETS["expectations"].encode(), "t.yaml")
    policy = join(load_policy(SNIPPETS[wanted.policy].encode(), wanted.policy, Layer.COMMAND_LINE))
    outcomes = run_expectations(policy, wanted.expectations)
    assert [str(outcome) for outcome in outcomes if not outcome.met] == []


def test_its_links_lead_somewhere() -> None:
    """Each link within the page names a heading of it."""
    headings = re.findall(r"^#+ (.*)$", PAGE, re.MULTILINE)
    anchors = {re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    links = set(re.findall(r"\]\(#([^)]*)\)", PAGE))
    assert links
    assert links <= anchors


def test_it_is_found_from_the_root() -> None:
    """The generator works on the file of this repository."""
    assert os.path.samefile(
        policy_reference.PAGE, os.path.join(os.path.dirname(__file__), "..", "..", "docs", "policy.md")
    )
