"""The packages that read inside TLS are seen to only where a policy needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.runtime.test_inspection import READ
from tidegate.cli import server_packages
from tidegate.cli.inspection_packages import ensure_for
from tidegate.policy.layers import join
from tidegate.runtime.inspection import CODINGS, PACKAGES

if TYPE_CHECKING:
    import pytest


def test_only_where_something_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """INS-1: a policy without methods and paths looks for no package; one with them for exactly these."""
    asked: list[object] = []
    monkeypatch.setattr(server_packages, "ensure", lambda *given: asked.append(given))
    ensure_for(join(), print)
    assert asked == []
    ensure_for(READ, print)
    assert asked == [(print, PACKAGES, "the packages that read inside TLS", CODINGS)]
