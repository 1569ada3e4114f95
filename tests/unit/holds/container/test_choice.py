"""choice.py: which transport an engine gets."""

from __future__ import annotations

import pytest

from tidegate.holds.container.choice import choose
from tidegate.holds.container.engine import DOCKER, Engine
from tidegate.model.errors import UsageError


def test_a_transport_can_be_named() -> None:
    """`--transport` forces one, and a wrong name is refused (HLD-4)."""
    assert choose(Engine(DOCKER), "enter").name == "enter"
    with pytest.raises(UsageError, match="no transport 'pigeon'"):
        choose(Engine(DOCKER), "pigeon")
