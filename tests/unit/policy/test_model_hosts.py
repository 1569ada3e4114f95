"""Which model services a harness's rules lead to."""

from __future__ import annotations

import pytest

from tests.unit.policy.written import row
from tidegate.model.host import canonical_host
from tidegate.policy.model_hosts import MODEL_HOSTS, guarded_by

API = ("api.anthropic.com", 443)


@pytest.mark.parametrize(
    ("rules", "guarded"),
    [
        (["api.anthropic.com:443"], (API,)),
        (["api.anthropic.com"], (API,)),
        (["*.anthropic.com:443"], (API,)),
        (["**.openai.com"], (("api.openai.com", 443),)),
        (["api.anthropic.com:80"], ()),
        (["anthropic.com:443", "api.anthropic.com.example:443"], ()),
        (["platform.claude.com:443"], ()),
        ([], ()),
    ],
)
def test_those_that_a_rule_matches(rules: list[str], guarded: tuple[tuple[str, int], ...]) -> None:
    """INS-8: by name, by wildcard, with and without a port; the neighbours are none."""
    assert guarded_by([row(text) for text in rules]) == guarded


def test_they_are_canonical() -> None:
    """POL-3: they are compared as they stand."""
    assert all(canonical_host(host).text == host for host in MODEL_HOSTS)
