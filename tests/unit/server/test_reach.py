"""tidegate.server.reach: what a server is given; notifications and webhook are proved in their own files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.unit.server.kit import served
from tidegate.server.reach import reach_out
from tidegate.server.webhook import Target

if TYPE_CHECKING:
    from tidegate.server.serve import Server


@pytest.mark.parametrize("webhook", [False, True])
def test_a_webhook_makes_somebody_present(tmp_path: Path, webhook: bool) -> None:
    """ASK-4: with one, `--wait` waits; without any way to a person it does not."""
    key = tmp_path / "key"
    key.write_text("0123456789abcdef")
    key.chmod(0o600)
    target = Target("http://127.0.0.1:9/", str(key)) if webhook else None

    async def go(server: Server) -> None:
        reach_out(server, {}, notify=True, target=target, url="http://127.0.0.1:1", warn=print)
        assert server._present("t1") is webhook
        assert (server.webhook is not None) is webhook

    served(tmp_path, go)
