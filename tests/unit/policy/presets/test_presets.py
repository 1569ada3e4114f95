"""The presets: what the names mean."""

from __future__ import annotations

import pytest

from tidegate.policy.presets import PRESET_NAMES, UnknownPresetError, members, rule_name


def test_names() -> None:
    """Every registry of POL-11 has a preset, and the group is their union."""
    registries = ("crates", "go", "maven", "npm", "nuget", "pypi", "rubygems", "yarn")
    assert members("package-registries") == registries
    assert set(registries) < set(PRESET_NAMES)
    assert members("npm") == ("npm",)
    assert rule_name("npm") == "package-registries"


def test_an_object_store_is_in_no_group() -> None:
    """What anyone can write to is named on its own, never by the group."""
    assert "go-storage" not in members("package-registries")
    assert rule_name("go-storage") == "go-storage"


def test_unknown() -> None:
    """An unknown name says which there are."""
    with pytest.raises(UnknownPresetError) as caught:
        members("nothing")
    assert caught.value.names == PRESET_NAMES
