"""small_init.py: an init of this machine that runs in any container."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tidegate.holds import linux
from tidegate.holds.container import small_init
from tidegate.holds.container.elf_program import elf_program
from tidegate.holds.container.engine import DOCKER, PODMAN, Engine
from tidegate.model.errors import StartError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", [DOCKER, PODMAN])
def test_one_that_needs_no_library_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that can be executed and has no loader; where there is none the line names the package (HLD-4, HLD-7)."""
    static = tmp_path / "init"
    static.write_bytes(elf_program(linux.MACHINE, b"code"))
    monkeypatch.setattr(small_init, "_INITS", (str(tmp_path / "absent"), "/usr/bin/env", str(static)))
    with pytest.raises(StartError, match="no init program") as caught:
        small_init.find_init(Engine(name, {}))
    assert caught.value.fix.startswith("apt install ")
    static.chmod(0o755)
    assert small_init.find_init(Engine(name, {})) == str(static)
