"""`tidegate watch`: what waits, which tasks live, and their connections as they happen, on the whole terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import click

from tidegate.cli.api_client import ApiClient
from tidegate.cli.main import say
from tidegate.cli.server_packages import ensure
from tidegate.model.errors import StartError

if TYPE_CHECKING:
    from collections.abc import Mapping

PACKAGES: Final[Mapping[str, str]] = {"textual": "textual>=8"}
"""What is imported, and what is installed for it; pyproject's extra `watch` has the same."""


@click.command()
def watch() -> int:
    """Show what waits for you, the tasks and their connections, and answer with one key."""
    client = ApiClient()
    client.get("/api/health")  # before the screen changes: no server is one clear line
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)):
        raise StartError("tidegate watch needs a terminal for itself", fix="tidegate questions --follow")
    ensure(say, PACKAGES, "the packages of `tidegate watch`")
    from tidegate.cli.watch_screen import Watch

    Watch(client).run()
    return 0
