"""tidegate.model.verdict."""

from __future__ import annotations

from tidegate.model.verdict import How, Phase, Verdict


def test_the_words_are_the_contracts() -> None:
    """JRN-1, POL-7: the words in files, logs and answers are fixed."""
    assert [verdict.value for verdict in Verdict] == ["allow", "ask", "deny"]
    assert [phase.value for phase in Phase] == ["install", "runtime"]
    assert [how.value for how in How] == ["tunneled", "inspected", "forwarded", "refused", "captured", "published"]
