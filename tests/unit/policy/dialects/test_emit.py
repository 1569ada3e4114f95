"""What a file became, as text of ours."""

from __future__ import annotations

import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.policy.dialects.told import policy_of, took
from tidegate.model.rule import Layer
from tidegate.policy.dialects.emit import policy_text
from tidegate.policy.layers import join
from tidegate.policy.loader import load_policy
from tidegate.policy.snapshot import to_plain
from tidegate.policy.written import quoted


def test_the_text_is_a_policy_and_means_the_same() -> None:
    """POL-15: the round trip: what `import` prints loads, and a task under the file has just that policy."""
    imported = took('{"hosts": ["a.test", "*.x.org", "*.y.org:443", "bücher.example:80"]}')
    text, places = policy_text(imported)
    printed = join(load_policy(text.encode(), "file", Layer.COMMAND_LINE))
    direct = policy_of(imported)

    def without_places(rules: object) -> list[tuple[object, ...]]:
        return [(rule.text, rule.verdict, rule.phase, rule.limits) for rule in rules]  # type: ignore[attr-defined]

    assert without_places(printed.rules) == without_places(direct.rules)
    assert to_plain(printed)[4:] == to_plain(direct)[4:]
    assert {rule.source for rule in direct.rules} == {"file:1:12", "file:1:22", "file:1:48"}
    assert {(line.line, line.column) for line in places.values()} == {(1, 12), (1, 22), (1, 48)}


def test_what_was_left_out_stands_in_its_head() -> None:
    """POL-15: who finds the policy later sees what it lacks; in ASCII, on one line each."""
    text, _ = policy_text(took('{"hosts": ["*.x.org:443"], "prompt\\u00e9": 1}', filename="f\nö.json"))
    assert text.isascii()
    assert "# f\\nö.json".encode("ascii", "backslashreplace").decode() in text
    assert "hosts '*.x.org:443' -> dropped" in text
    assert all(line[:1] == "#" or ":" in line or "-" in line for line in text.splitlines())


def test_many_left_out_are_counted() -> None:
    """POL-15: the head is bounded."""
    hosts = ", ".join(f'"*.h{n}.test:1"' for n in range(80))
    text, _ = policy_text(took(f'{{"hosts": [{hosts}]}}'))
    assert sum(line.startswith("#") for line in text.splitlines()) == 55
    assert "# and 30 more" in text


@given(st.text(max_size=20))
def test_every_text_can_be_quoted(text: str) -> None:
    """POL-15: YAML reads back what was written."""
    shown = text.encode("utf-8", "replace").decode()
    assert yaml.safe_load(quoted(shown)) == shown
    assert quoted(shown).isascii()
