"""tidegate.runtime.tool_secrets. Whole runs are in tests/unit/cli/test_run_tools.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tidegate.model.errors import StartError
from tidegate.runtime import secret_store
from tidegate.runtime.secret_store import Stored
from tidegate.runtime.tool_secrets import ToolSecrets
from tidegate.tools.program import Ran

if TYPE_CHECKING:
    from pathlib import Path


def test_values_go_to_the_program_and_to_nobody_else(tmp_path: Path) -> None:
    """SRV-6, INS-5: what is printed has a stand-in of the same length in place of a value; the rest is as it was."""
    state = str(tmp_path)
    stored = Stored("KEY", (("a.test", 443),), "bearer", "", "PAY_KEY", "env", ("FROM",))
    secret_store.save(state, stored)
    value = "sk_live_0123456789abcdef"
    secrets = ToolSecrets(["KEY"], state, {"FROM": value}, -1)
    assert secrets.variables == {"PAY_KEY": value}
    covered = secrets.cover(Ran("failed", 1, f"<{value}>".encode(), b"plain", 0.0))
    assert value.encode() not in covered.output
    assert len(covered.output) == len(value) + 2
    assert (covered.errors, covered.why) == (b"plain", "failed")


def test_a_value_that_is_not_there_is_said(tmp_path: Path) -> None:
    """SRV-6: the variable is not set, or there is no such secret: it does not start."""
    secret_store.save(str(tmp_path), Stored("KEY", (("a.test", 443),), "bearer", "", "KEY", "env", ("FROM",)))
    for name in ("KEY", "NONE"):
        with pytest.raises(StartError):
            ToolSecrets([name], str(tmp_path), {}, -1)
