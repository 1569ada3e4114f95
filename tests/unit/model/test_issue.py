"""tidegate.model.issue."""

from __future__ import annotations

import pytest

from tidegate.model.errors import UsageError
from tidegate.model.issue import is_issue, issue_of


@pytest.mark.parametrize("key", ["ABC-1", "A1_B-99", "AB-1234567890"])
def test_keys(key: str) -> None:
    """JRN-6: what is taken for a key of an issue; nothing of it can leave its place in a path."""
    assert is_issue(key)
    assert issue_of(key) == key
    for wrong in (key.lower(), key + "/", key + "\n", key + "-1", "-1", "A-1", "ABC-0", "ABC-01", "1BC-1", key + "?x"):
        assert not is_issue(wrong)
        with pytest.raises(UsageError):
            issue_of(wrong)


def test_none_is_none() -> None:
    """JRN-6: a task without an issue has ''."""
    assert issue_of("") == ""
    assert not is_issue("")
