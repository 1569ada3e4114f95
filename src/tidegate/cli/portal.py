"""`tidegate portal`: opens the portal in a browser, or pairs a phone with it (SRV-2, SRV-3).

A browser gets a one-time code in the URL's fragment, never a token. The URL is not given to it as an argument, which
others on this machine can read while the code is good, but in a private file that sends the browser on.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from html import escape
from typing import Final

import click

from tidegate.cli.api_client import ApiClient
from tidegate.model.errors import TidegateError
from tidegate.runtime.state import state_folder

OPENER: Final = "xdg-open"
PAGE: Final = "portal.html"  # in the server's private folder


@click.command()
@click.option("--print", "only_print", is_flag=True, help="Print the URL and open nothing.")
@click.option("--viewer", is_flag=True, help="For looking only.")
@click.option("--phone", is_flag=True, help="Show a QR code for a phone (tidegate serve --listen).")
def portal(*, only_print: bool, viewer: bool, phone: bool) -> int:
    """Open the portal in a browser."""
    role = "viewer" if viewer else "owner"
    client = ApiClient()
    if phone:
        return _phone(client, role)
    url = client.post("/api/codes", {"role": role})["url"]
    if only_print or not _open(url):
        click.echo(url)
        click.echo("tidegate: it works once, within a minute", err=True)
    return 0


def _phone(client: ApiClient, role: str) -> int:
    answer = client.post("/api/pair", {"role": role})
    try:
        import segno
    except ImportError:
        raise TidegateError("QR codes need the package segno", fix="pip install tidegate[server]") from None
    segno.make(answer["url"], error="m").terminal(border=2, compact=True)
    click.echo(answer["url"])
    click.echo(f"certificate (SHA-256): {answer['fingerprint']}")
    click.echo("tidegate: it works once, within five minutes; compare the fingerprint with the phone's", err=True)
    return 0


def _open(url: str) -> bool:
    """Have the desktop's browser open the URL; False where there is no desktop."""
    opener = shutil.which(OPENER)
    if opener is None or not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False
    path = os.path.join(state_folder(os.environ), "run", PAGE)
    with open(path, "w", encoding="utf-8", opener=_private) as file:
        file.write(
            f'<!doctype html><meta http-equiv="refresh" content="0; url={escape(url)}"><title>Tidegate</title>\n'
        )
    done = subprocess.run([opener, path], stdin=subprocess.DEVNULL, check=False)
    return done.returncode == 0


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
