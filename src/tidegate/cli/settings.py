"""`tidegate settings`: what applies to tasks that say nothing of their own, and how people hear of questions.

Shown and changed (POL-13, ASK-2, ASK-5). The webhook's key comes from a file or is made here, and is never shown.
"""

from __future__ import annotations

import json
from typing import Any, Final

import click

from tidegate.cli import terms
from tidegate.cli.api_client import ApiClient
from tidegate.journal.summary import printable
from tidegate.model.errors import UsageError

_NAMES: Final = {
    "network-default": "network_default",
    "default-hosts": "default_hosts",
    "wait": "wait_seconds",
    "notify": "notify",
    "webhook": "webhook",
    "relay-image": "relay_image",
}
_SWITCH: Final = {"on": True, "off": False}


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.pass_context
def settings(context: click.Context, *, as_json: bool) -> None:
    """What applies to new tasks that say nothing of their own."""
    if context.invoked_subcommand is None:
        _show(ApiClient().get("/api/settings"), as_json=as_json)


@settings.command("set")
@click.argument("name", type=click.Choice(tuple(_NAMES)))
@click.argument("values", metavar="VALUE...", nargs=-1)
@click.option("--key-file", metavar="FILE", default="", help="With webhook: the key that signs; only you can read it.")
def set_(*, name: str, values: tuple[str, ...], key_file: str) -> None:
    """Change one setting; it is in force at once.

    \b
    network-default none|allowlist  what a task created over the API without a
                                    policy reaches: nothing, or the default hosts
    default-hosts HOST...           the default hosts; without a HOST none
    wait TIME                       how long a question waits: 1m to 8h
    notify on|off                   notifications on the server's desktop
    webhook URL|none                where questions are posted, signed with the
                                    key in --key-file, or with the one it had
    relay-image IMAGE|none          the image of relays (docs/holds.md)
    """  # noqa: D301  click reads the escape
    changes = {_NAMES[name]: _value(name, values)}
    if key_file:
        from tidegate.journal.sinks.signature import read_key

        if name != "webhook":
            raise UsageError("--key-file is the webhook's", fix="tidegate settings set webhook URL --key-file FILE")
        try:
            changes["webhook_key"] = read_key(key_file, "--key-file").decode()
        except UnicodeDecodeError:
            raise UsageError(f"--key-file {key_file!r} is not text", fix="openssl rand -hex 32 >FILE") from None
    _show(ApiClient().ask("PATCH", "/api/settings", changes), as_json=False)


def _value(name: str, values: tuple[str, ...]) -> Any:
    if name == "default-hosts":
        return list(values)
    if len(values) != 1:
        raise UsageError(f"{name} has one value", fix=f"tidegate settings set {name} VALUE")
    if name == "notify":
        if values[0] not in _SWITCH:
            raise UsageError(f"notify is on or off, not {values[0]!r}", fix="tidegate settings set notify on")
        return _SWITCH[values[0]]
    if name in ("webhook", "relay-image") and values[0] == "none":
        return ""
    return terms.wait(values[0]) if name == "wait" else values[0]


def _show(found: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(found))
        return
    hosts = " ".join(printable(host) for host in found["default_hosts"])
    click.echo(f"network-default: {found['network_default']}")
    click.echo(f"default-hosts: {hosts or 'none'}")
    click.echo(f"wait: {terms.left(found['wait_seconds'])}")
    fixed = dict.fromkeys(found["fixed"], " (serve's command line)")
    notify = found["notify"] and "notify" not in fixed
    click.echo(f"notify: {'on' if notify else 'off'}{fixed.get('notify', '')}")
    click.echo(f"webhook: {printable(found['webhook']) or 'none'}{fixed.get('webhook', '')}")
    click.echo(f"relay-image: {printable(found['relay_image']) or 'none'}")
