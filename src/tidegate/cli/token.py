"""`tidegate token`: who may use the API over loopback (SRV-1). A token's secret is printed once, alone on a line."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import click

from tidegate.cli import terms
from tidegate.cli.api_client import ApiClient
from tidegate.cli.main import say
from tidegate.journal.summary import printable


@click.group()
def token() -> None:
    """Tokens for the API."""


@token.command()
@click.argument("name")
@click.option("--owner", is_flag=True, help="It may change things; without this it may only look.")
@click.option("--expires", metavar="T", help="When it ends (8h, 30d, 2030-01-31); never when left out.")
def create(*, name: str, owner: bool, expires: str | None) -> int:
    """Make a token called NAME and print its secret, which cannot be shown again."""
    body: dict[str, Any] = {"name": name, "role": "owner" if owner else "viewer"}
    if expires is not None:
        body["expires_at"] = terms.until(expires, dt.datetime.now().astimezone())
    click.echo(ApiClient().post("/api/tokens", body)["secret"])
    return 0


@token.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, for machines.")
def list_tokens(*, as_json: bool) -> int:
    """Show the tokens that are good."""
    tokens = ApiClient().get("/api/tokens")["tokens"]
    if not tokens and not as_json:
        say("there is no token: tidegate token create NAME")
    for found in tokens:
        if as_json:
            click.echo(json.dumps(found))
            continue
        used = f"last used {_time(found['last_used_at'])}" if found["last_used_at"] else "never used"
        ends = f" · ends {_time(found['expires_at'])}" if found["expires_at"] else ""
        click.echo(f"{found['id']}  {printable(found['name'])} · {found['role']} · {used}{ends}")
    return 0


@token.command()
@click.argument("number", metavar="ID", type=click.IntRange(1))
def revoke(*, number: int) -> int:
    """End a token, and what is open with it."""
    ApiClient().delete(f"/api/tokens/{number}")
    click.echo(f"{number} is revoked")
    return 0


def _time(at: float) -> str:
    return dt.datetime.fromtimestamp(at).astimezone().isoformat(" ", "minutes")
