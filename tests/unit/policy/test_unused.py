"""tidegate.policy.unused."""

from __future__ import annotations

from typing import Any

from tests.unit.journal.contact_lines import contact, refusal
from tests.unit.policy.test_learned import learned
from tidegate.model.reason import Reason
from tidegate.model.verdict import Phase
from tidegate.policy.amend import Text
from tidegate.policy.layers import join
from tidegate.policy.unused import unused_entries


def unused(text: str, *contacts: Any) -> list[str]:
    """Return the entries of a policy that these lines had no use for."""
    found = Text(text.encode(), "p.yaml")
    entries = found.entries()
    places = unused_entries(join(found.layer), found.layer, entries, learned(*contacts).places())
    return [f"{entry.phase} {entry.text}" for entry in entries if entry.at in places]


def test_what_governs_is_used() -> None:
    """JRN-7: of several that match only the one that decides is used, on its port and in its phase."""
    text = (
        "network:\n  install: {allow: [a.test]}\n"
        "  runtime: {allow: [a.test, 'a.test:443', '**.b.test', '*'], ask: [q.test]}\n"
    )
    lines = (contact(), contact("x.b.test"), contact("q.test"))
    assert unused(text, *lines) == ["install a.test", "runtime a.test", "runtime *"]
    assert unused(text, contact(phase=Phase.INSTALL), contact(port=80), contact("z.test"))[0] == "runtime a.test:443"


def test_a_try_is_a_use() -> None:
    """JRN-7: what an entry lets through and nobody answered is no entry too many."""
    text = "network: {runtime: {allow: [a.test], deny: [d.test]}}\n"
    assert unused(text, refusal("a.test", reason=Reason.UPSTREAM_TIMEOUT)) == []
    assert unused(text, refusal("d.test"), refusal("a.test", 0)) == ["runtime a.test"]


def test_a_preset_is_used_by_its_hosts_and_a_mirror_by_its_own() -> None:
    """JRN-7, POL-11: a group is used where one of its presets is; where hosts stand in for a preset, by these."""
    text = "network: {runtime: {allow: ['@npm', '@pypi']}}\n"
    assert unused(text, contact("pypi.org")) == ["runtime @npm"]
    assert unused("network: {runtime: {allow: ['@package-registries']}}\n", contact("pypi.org")) == []
    mirrored = f"presets: {{npm: [npm.corp.test]}}\n{text}"
    assert unused(mirrored, contact("npm.corp.test")) == ["runtime @pypi"]
    assert unused(mirrored, contact("registry.npmjs.org")) == ["runtime @npm", "runtime @pypi"]
