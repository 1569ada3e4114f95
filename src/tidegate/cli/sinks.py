"""`tidegate sinks`: where the action log is sent, how far each has come, and setting them (JRN-6)."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import click

from tidegate.cli.api_client import ApiClient, segment
from tidegate.cli.main import say
from tidegate.journal.summary import printable
from tidegate.model.errors import TidegateError, UsageError

_LONGEST_CA = 1 << 16


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, for machines.")
@click.pass_context
def sinks(context: click.Context, *, as_json: bool) -> int:
    """What follows the action log, and how far it has come. Exit status 1 where one cannot send."""
    if context.invoked_subcommand is not None:
        return 0
    found = ApiClient().get("/api/sinks")["sinks"]
    for one in found:
        click.echo(json.dumps(one) if as_json else _line(one))
    if not found and not as_json:
        say("there is no sink: tidegate sinks set NAME URL; see docs/sinks.md")
    return 1 if any(one["error"] for one in found) else 0


@sinks.command("set")
@click.argument("name", metavar="NAME")
@click.argument("url", metavar="URL")
@click.option("--key-file", metavar="FILE", default="", help="Its key, token or user:password; only you can read it.")
@click.option("--type", "types", metavar="TYPE", multiple=True, help="Only these: net.blocked, task.* (repeatable).")
@click.option(
    "--min",
    "least",
    metavar="SEVERITY",
    type=click.Choice(("critical", "error", "warning", "notice", "info")),
    default="info",
    help="critical, error, warning, notice or info.",
)
@click.option("--ca", metavar="FILE", default="", help="What verifies it in place of the system's roots, as PEM.")
@click.option("--client-cert", metavar="FILE", default="", help="The certificate that we show it, as PEM.")
@click.option("--client-key", metavar="FILE", default="", help="The certificate's key, as PEM; only you can read it.")
@click.option("--proxy", metavar="http://HOST:PORT", default="", help="Go through this HTTP proxy.")
@click.option("--proxy-key-file", metavar="FILE", default="", help="The proxy's user:password; only you can read it.")
@click.option("--key-header", metavar="NAME", default="", help="Send the key in this header.")
@click.option("--clear", is_flag=True, help="Plain http, tcp or udp to another machine: others can read it.")
@click.option("--from-start", is_flag=True, help="Begin with the first line that there is, not with the next one.")
def set_(
    *,
    name: str,
    url: str,
    key_file: str,
    types: tuple[str, ...],
    least: str,
    ca: str,
    client_cert: str,
    client_key: str,
    proxy: str,
    proxy_key_file: str,
    key_header: str,
    clear: bool,
    from_start: bool,
) -> None:
    """Send the action log to URL, or change how it is sent there.

    \b
    https://HOST/PATH                        signed JSON lines
    elasticsearch+https://HOST:9200/INDEX    or opensearch+
    otlp+https://HOST:4318                   OpenTelemetry logs
    jira+https://SITE.atlassian.net          a comment on each task's --issue
    syslog+tls://HOST  syslog+tcp://  syslog+udp://  syslog:///dev/log
    """  # noqa: D301  click reads the escape
    body: dict[str, Any] = {"url": url, "types": types, "min": least, "key_header": key_header, "clear": clear}
    body["proxy"] = proxy
    for field, option, path in (
        ("key", "--key-file", key_file),
        ("client_key", "--client-key", client_key),
        ("proxy_key", "--proxy-key-file", proxy_key_file),
    ):
        if path:
            body[field] = _key(option, path)
    for field, option, path in (("ca", "--ca", ca), ("client_cert", "--client-cert", client_cert)):
        if path:
            body[field] = _certificates(option, path)
    done = ApiClient().ask("PUT", f"/api/sinks/{segment(name)}", body | {"from_start": from_start})
    click.echo(_line(done))


def _key(option: str, path: str) -> str:
    from tidegate.journal.sinks.client_tls import LONGEST_CLIENT_KEY
    from tidegate.journal.sinks.signature import LONGEST_KEY, read_key

    pem = option == "--client-key"
    try:
        return read_key(path, option, 1, LONGEST_CLIENT_KEY if pem else LONGEST_KEY).decode("ascii")
    except UnicodeDecodeError:
        form = "a key in PEM" if pem else "one line, as it was given to you"
        raise UsageError(f"{option} {path!r} is not ASCII", fix=form) from None


def _certificates(option: str, path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read(_LONGEST_CA + 1)
    except (OSError, UnicodeDecodeError):
        raise UsageError(f"{option} {path!r} cannot be read", fix="a file of certificates in PEM") from None


@sinks.command()
@click.argument("name", metavar="NAME")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def test(*, name: str, as_json: bool) -> int:
    """Send one record that says that it is a test, and say what the receiver answered.

    Exit status 1 where it has not taken it. It is no line of the log, goes on a connection of its own, and changes
    nothing of how far the sink has come. Jira, which comments on issues only, is asked who signs in.
    """
    done = _known("POST", f"/api/sinks/{segment(name)}/test")
    if as_json:
        click.echo(json.dumps(done))
    else:
        said = "taken" if done["taken"] else "not taken"
        parts = f"{done['name']}  {done['kind']} at {done['host']}", f"{said}: {done['answer']}"
        click.echo(" · ".join(printable(part) for part in parts))
    return 0 if done["taken"] else 1


@sinks.command()
@click.argument("name", metavar="NAME")
def remove(*, name: str) -> None:
    """Send nothing there any more, and forget how far it had come."""
    _known("DELETE", f"/api/sinks/{segment(name)}")
    click.echo(f"{printable(name)} is removed")


def _known(method: str, path: str) -> Any:
    """Ask about one sink.

    Raises:
        UsageError: where there is none of this name.
    """
    try:
        return ApiClient().ask(method, path)
    except TidegateError as error:
        if error.code != "no-such-sink":
            raise
        raise UsageError(error.what, fix=error.fix) from None


def _line(one: dict[str, Any]) -> str:
    through = f" through {one['proxy']}" if one["proxy"] else ""
    parts = [f"{one['name']}  {one['kind']} at {one['host']}{through}", f"line {one['position']}"]
    if one["state"] != "behind":
        parts.append(one["state"])
    if one["lag"]:
        parts.append(f"{one['lag']} behind")
    if one["error"]:
        since = one["failing_since"]
        at = dt.datetime.fromtimestamp(since).astimezone().isoformat(" ", "minutes") if since else ""
        parts.append(f"{one['error']}" + (f" (since {at})" if at else ""))
    if one["set_aside"]:
        parts.append(f"{one['set_aside']} set aside")
    if one["lost"]:
        gaps = ", ".join(f"{gap['first']}-{gap['last']}" for gap in one["gaps"])
        parts.append(f"{one['lost']} were gone before they were sent ({gaps})")
    return " · ".join(printable(part) for part in parts)
