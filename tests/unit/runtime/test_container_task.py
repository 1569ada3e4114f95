"""What a container hold is told of relays, from a real store; the rest is in tests/holds/test_containers.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tidegate.holds.hold import Container
from tidegate.model.errors import StartError
from tidegate.runtime.container_task import with_relay
from tidegate.state.folders import STORE_FILE
from tidegate.state.sqlite import open_store

if TYPE_CHECKING:
    from pathlib import Path


def test_the_setting_is_for_who_names_none(tmp_path: Path) -> None:
    """HLD-4: `relay_image` is a setting; the command line goes before it; without a store there is our own."""
    state = str(tmp_path)
    assert with_relay(Container("i"), state) == Container("i", state=state)
    store = open_store(state)
    store.patch_settings({"relay_image": "example.test/relay:1"})
    store.close()
    assert with_relay(Container("i"), state).relay_image == "example.test/relay:1"
    assert with_relay(Container("i", relay_image="other:2"), state).relay_image == "other:2"


def test_settings_that_cannot_be_read_stop_the_start(tmp_path: Path) -> None:
    """HLD-7: another image than the one that was set is never taken."""
    (tmp_path / STORE_FILE).write_text("no database")
    with pytest.raises(StartError):
        with_relay(Container("i"), str(tmp_path))
