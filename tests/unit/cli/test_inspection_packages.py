"""The packages that read inside TLS are seen to only where a policy needs them."""

from __future__ import annotations

import pytest

from tests.unit.runtime.test_inspection import READ, REGISTRIES
from tidegate.cli import inspection_packages, server_packages
from tidegate.cli.inspection_packages import ensure_for
from tidegate.model.errors import StartError
from tidegate.policy.layers import command_line, join
from tidegate.runtime.inspection import CODINGS, PACKAGES


def test_only_where_something_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """INS-1: where nothing is read no package is looked for, and where all are there nothing is installed."""
    asked: list[object] = []
    monkeypatch.setattr(server_packages, "ensure", lambda *given: asked.append(given))
    for policy in (join(command_line(profile="closed")), REGISTRIES, READ):
        ensure_for(policy, print)
    assert asked == []
    monkeypatch.setattr(inspection_packages, "missing", lambda: ["h2"])
    ensure_for(join(command_line(profile="closed")), print)
    assert asked == []
    ensure_for(READ, print)
    assert asked == [(print, PACKAGES, "the packages that read inside TLS", CODINGS)]


def test_where_they_cannot_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """INS-7: the start fails closed and names what lets registries pass unread; a person's own rule names only pip."""

    def fails(*_: object) -> None:
        raise StartError("they could not be installed (no network)", fix="pip install x", code="packages")

    monkeypatch.setattr(server_packages, "ensure", fails)
    monkeypatch.setattr(inspection_packages, "missing", lambda: ["h2"])
    with pytest.raises(StartError, match=r"package registries are read-only.*no network") as caught:
        ensure_for(REGISTRIES, print)
    assert caught.value.fix == "pip install x, or --registries tunnel, which lets publishing pass"
    with pytest.raises(StartError, match="no network") as caught:
        ensure_for(READ, print)
    assert caught.value.fix == "pip install x"
    with pytest.raises(StartError) as caught:
        ensure_for(REGISTRIES, print, secrets=True)
    assert caught.value.fix == "pip install x"
