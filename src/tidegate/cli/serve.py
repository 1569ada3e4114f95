"""`tidegate serve`: the server in the foreground, until it is told to end (SIGTERM, SIGINT, Ctrl-C)."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import signal
from typing import TYPE_CHECKING

import click

from tidegate.cli.main import say
from tidegate.runtime.state import state_folder

if TYPE_CHECKING:
    from tidegate.server.serve import Server


@click.command()
def serve() -> int:
    """Serve tasks, questions and the record of both: `run` uses it from now on, `exec` and `task` need it."""
    gc.enable()  # the launcher starts without, for what ends soon
    _raise_limits()
    return asyncio.run(_serve())


async def _serve() -> int:
    from tidegate.server.serve import Server

    loop = asyncio.get_running_loop()
    server = Server(state_folder(os.environ), environ=os.environ, warn=say)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.request_stop)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a closed terminal does not end what others run behind
    await server.start()
    try:
        _announce(server)
        return await server.run()
    finally:
        await server.stop()


def _announce(server: Server) -> None:
    server.announce()
    say(f"serving (pid {server.pid}); tasks and their record are in {server.state}")


def _raise_limits() -> None:
    # Two descriptors a tunnel, and a thousand tasks: what the administrator allows is what the gate may use.
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
