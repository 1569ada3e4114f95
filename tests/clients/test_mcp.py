"""The official client of the Model Context Protocol, in a task, with its tools (SRV-6)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.clients.kit import TOOLS
from tests.product import REPOSITORY, Product
from tests.tools_kit import URL, declare, tool
from tidegate.tools.mcp import VERSIONS

if TYPE_CHECKING:
    from pathlib import Path

PYTHON = os.path.join(TOOLS, "poetry", "bin", "python")
CLIENT = REPOSITORY / "tests" / "clients" / "mcp_get.py"


def test_the_official_client_finds_and_calls_tools(tmp_path: Path) -> None:
    """SRV-6: it negotiates a version, lists, calls, and is told what went wrong, by the proxy of its environment."""
    there = [PYTHON, "-c", "import mcp.client.streamable_http"]
    if not os.path.exists(PYTHON) or subprocess.run(there, check=False, capture_output=True).returncode:
        pytest.skip(f"{PYTHON} has no package mcp: scripts/setup installs it")
    product = Product(tmp_path, user=False)
    declare(product, shout=tool("print(text.upper(), end='')", text={"type": "string", "maxLength": 9}))
    shutil.copy(CLIENT, product.folder)
    words = ("--share", f"{TOOLS}:ro", "--tool", "shout", "--", PYTHON, CLIENT.name, f"{URL}/mcp")
    done = product.run(*words)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "version": VERSIONS[0],
        "tools": ["shout"],
        "called": [["HEY", False], ["input.text is not of type string", True]],
        "error": "there is no such tool",
    }
    assert "tools.tidegate.internal:80 · forwarded (tools)" in done.stderr
