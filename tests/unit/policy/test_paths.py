"""The normal form of paths; what follows from it is in test_alternatives.py."""

from __future__ import annotations

import pytest

from tidegate.policy.paths import OVERRIDES, TARGETS, normal_path


@pytest.mark.parametrize(
    ("target", "segments"),
    [
        (b"/", ["", ""]),
        (b"/a/b?c=/../d", ["", "a", "b"]),
        (b"/%61/x%20y", ["", "a", "x%20y"]),
        (b"/a%3ab", ["", "a%3Ab"]),
        (b"/a/../b", None),
        (b"/a//b", None),
        (b"/a%2fb", None),
        (b"/a%", None),
        (b"*", None),
    ],
)
def test_normal_form(target: bytes, segments: list[str] | None) -> None:
    """INS-6: one spelling for each path, and none for what two servers could read differently."""
    assert normal_path(target) == segments


def test_headers_that_override() -> None:
    """INS-6: those of targets are among them, with '-' and '_' alike."""
    assert TARGETS < OVERRIDES
    assert {b"x-http-method-override", b"x_http_method_override", b"x-method-override", b"x-http-method"} < OVERRIDES
