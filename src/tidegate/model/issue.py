"""The key of an issue in a tracker, as a task names it with `--issue`: `ABC-123`. Pure."""

from __future__ import annotations

from tidegate.model.errors import UsageError

_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_DIGITS = frozenset("0123456789")
_LONGEST_PROJECT = 20
_LONGEST_NUMBER = 10


def is_issue(text: str) -> bool:
    """Whether it is one: a project of capital letters, digits and `_`, a hyphen, a number."""
    project, hyphen, number = text.partition("-")
    if not (hyphen and 2 <= len(project) <= _LONGEST_PROJECT and 1 <= len(number) <= _LONGEST_NUMBER):
        return False
    fits = project[0] in _LETTERS and set(project) <= _LETTERS | _DIGITS | {"_"}
    return fits and set(number) <= _DIGITS and number[0] != "0"


def issue_of(text: str) -> str:
    """Return it; '' stays.

    Raises:
        UsageError: when it is none.
    """
    if text and not is_issue(text):
        raise UsageError(f"{ascii(text)[:60]} is no key of an issue", fix="--issue ABC-123", code="issue")
    return text
