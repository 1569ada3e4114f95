"""`tidegate serve`: the server in the foreground, until it is told to end (SIGTERM, SIGINT, Ctrl-C)."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import shutil
import signal
import sys
from typing import TYPE_CHECKING

import click

from tidegate.cli.main import say
from tidegate.cli.server_packages import ensure
from tidegate.model.errors import UsageError
from tidegate.runtime.state import state_folder
from tidegate.server.units import KINDS, unit

if TYPE_CHECKING:
    from tidegate.journal.sinks.target import Target
    from tidegate.server.api.api import Api
    from tidegate.server.serve import Server


@click.command()
@click.option(
    "--port", metavar="N", type=click.IntRange(0, 65535), help="The port on 127.0.0.1 for the API and the portal."
)
@click.option("--no-portal", is_flag=True, help="Listen on no port: only this user's own programs get in.")
@click.option("--listen", metavar="ADDR:PORT", default="", help="Also listen here, over TLS, for paired phones.")
@click.option("--print-unit", type=click.Choice(KINDS), help="Print a unit for systemd, and how to install it.")
@click.option("--no-notify", is_flag=True, help="Show no notifications on the desktop, whatever the settings say.")
@click.option(
    "--webhook", metavar="URL", default="", help="Post questions there, signed, in place of the settings' webhook."
)
@click.option("--webhook-key-file", metavar="FILE", default="", help="The key that signs them; only you can read it.")
@click.option(
    "--tool",
    "tools",
    multiple=True,
    metavar="NAME",
    help="Tasks may be created with this tool of yours (docs/tools.md; may be repeated).",
)
def serve(
    *,
    port: int | None,
    no_portal: bool,
    listen: str,
    print_unit: str | None,
    no_notify: bool,
    webhook: str,
    webhook_key_file: str,
    tools: tuple[str, ...],
) -> int:
    """Serve tasks, questions and the record of both: `run` uses it from now on, `exec` and `task` need it."""
    if print_unit is not None:
        click.echo(unit(print_unit, _program(), state_home=os.environ.get("XDG_STATE_HOME", "")), nl=False)
        return 0
    ensure(say)
    gc.enable()  # the launcher starts without, for what ends soon
    _raise_limits()
    target = None
    if webhook or webhook_key_file:
        from tidegate.journal.sinks.signature import read_key
        from tidegate.journal.sinks.target import Target

        if not (webhook and webhook_key_file):
            raise UsageError("--webhook and --webhook-key-file go together", fix="--webhook URL --webhook-key-file F")
        target = Target(webhook, read_key(webhook_key_file))
    return asyncio.run(
        _serve(port, no_portal=no_portal, listen=listen, notify=not no_notify, target=target, tools=tools)
    )


async def _serve(
    port: int | None, *, no_portal: bool, listen: str, notify: bool, target: Target | None, tools: tuple[str, ...]
) -> int:
    from tidegate.server.api.api import open_api
    from tidegate.server.api.outside import bind_outside
    from tidegate.server.reach import reach_out
    from tidegate.server.serve import Server
    from tidegate.server.task_tools import offered

    offers = offered(tools)
    outside = bind_outside(listen)

    loop = asyncio.get_running_loop()
    server = Server(state_folder(os.environ), environ=os.environ, warn=say, tools=offers)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.request_stop)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a closed terminal does not end what others run behind
    await server.start()
    try:
        api = await open_api(server, port=None if no_portal else port or 0, outside=outside)
        try:
            reach_out(server, os.environ, notify=notify, target=target, url=api.url, warn=say)
            _announce(server, api)
            return await server.run()
        finally:
            await api.stop()
    finally:
        await server.stop()


def _announce(server: Server, api: Api) -> None:
    server.announce(api.port)
    say(f"serving (pid {server.pid}); tasks and their record are in {server.state}")
    if api.url:
        say(f"the portal is at {api.url}: tidegate portal opens it")
    if api.phone_url:
        say(f"phones that are paired (tidegate portal --phone) come in at {api.phone_url}")
        say(f"its certificate (SHA-256): {api.fingerprint}")


def _program() -> str:
    # As it was started; where that was by a name on the PATH, that is where it is.
    name = sys.argv[0]
    return os.path.abspath(name if "/" in name else shutil.which(name) or name)


def _raise_limits() -> None:
    # Two descriptors a tunnel, and a thousand tasks: what the administrator allows is what the gate may use.
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
