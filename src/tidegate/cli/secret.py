"""`tidegate secret`: keys that a task uses and never has (INS-5). Values come in, and are never shown."""

from __future__ import annotations

import os
import shutil
import sys
import time
from typing import Final

import click

from tidegate.cli.inspection_packages import ensure_packages
from tidegate.cli.main import say
from tidegate.model.destination import PortError, parse_authority
from tidegate.model.errors import StartError, UsageError
from tidegate.model.host import HostError
from tidegate.runtime import secret_store
from tidegate.runtime.secret_store import Stored, is_name
from tidegate.runtime.state import state_folder

_TOKEN: Final = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz")  # RFC 9110 section 5.6.2
_OURS: Final = frozenset(
    (
        *("host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade"),
        *("proxy-authorization", "proxy-connection", "http2-settings", "accept-encoding", "a-im"),
    )
)
"""Headers that are made anew, left behind or rewritten at a secret's host: a value in one of them would not arrive."""
_HTTPS: Final = 443
_NEEDED: Final = frozenset(("PATH", "HOME", "PWD", "SHELL", "TMPDIR"))


def _filled(context: click.Context, option: click.Parameter, text: str | None) -> str:
    # What a shell makes of a variable that is not set must not mean that the option was left out.
    if text == "":
        raise UsageError(f"{option.opts[0]} has an empty value", fix=f"{option.opts[0]} {option.make_metavar(context)}")
    return text or ""


@click.group()
def secret() -> None:
    """Keys that tasks use and never have: tidegate run --secret NAME."""


@secret.command("set")
@click.argument("name")
@click.option("--host", "hosts", multiple=True, metavar="HOST[:PORT]", help="Whom it is for (may be repeated).")
@click.option("--bearer", is_flag=True, help="It belongs in Authorization: Bearer (the default).")
@click.option("--basic", is_flag=True, help="It is the user name or password of Authorization: Basic.")
@click.option("--header", callback=_filled, metavar="NAME", help="It belongs in this header.")
@click.option("--query", callback=_filled, metavar="NAME", help="It is the value of this parameter of a query.")
@click.option("--body-field", callback=_filled, metavar="NAME", help="It is in this field of a JSON or form body.")
@click.option(
    "--env", "variable", callback=_filled, metavar="VAR", help="The task's variable with the stand-in (NAME)."
)
@click.option("--from-env", callback=_filled, metavar="VAR", help="Take it from this variable when a task starts.")
@click.option(
    "--from-file", callback=_filled, metavar="PATH", help="Take it from this file, which the task does not see."
)
@click.option("--from-command", is_flag=True, help="Take what COMMAND prints when a task starts.")
@click.option("--from-credential", callback=_filled, metavar="NAME", help="Take it from this credential of systemd.")
@click.option(
    "--from-keyring",
    default=("", ""),
    type=(str, str),
    metavar="SERVICE USER",
    help="Take it from this entry of the desktop's keyring.",
)
@click.argument("command", nargs=-1)
def set_secret(
    *, name: str, hosts: tuple[str, ...], bearer: bool, basic: bool, header: str, query: str, body_field: str,
    variable: str, from_env: str, from_file: str, from_command: bool, from_credential: str,
    from_keyring: tuple[str, str], command: tuple[str, ...],
) -> int:  # fmt: skip
    """Keep a secret called NAME.

    Without --from-… its value is asked for, or read from standard input, and kept sealed on disk.

    \b
    tidegate secret set GITHUB_TOKEN --host api.github.com
    tidegate secret set NPM_TOKEN --host registry.npmjs.org --from-command -- pass show npm
    """  # noqa: D301  click reads the escape
    if not is_name(name) or not is_name(variable or name):
        raise UsageError(f"{variable or name!r} is not a variable name", fix="letters, digits and '_', as in API_TOKEN")
    _refuse_a_taken_variable(variable or name)
    if sum(map(bool, (bearer, basic, header, query, body_field))) > 1:
        raise UsageError(
            "a secret goes into one place", fix="give one of --bearer, --basic, --header, --query and --body-field"
        )
    if sum(map(bool, (from_env, from_file, from_command, from_credential, any(from_keyring)))) > 1:
        raise UsageError("a secret comes from one source", fix="give one of the options --from-…")
    if bool(command) != from_command:
        raise UsageError("the command comes after --", fix=f"tidegate secret set {name} … --from-command -- PROGRAM …")
    named = {"header": header, "query": query, "body-field": body_field}
    place = next((kind for kind, field in named.items() if field), "basic" if basic else "bearer")
    field = _path(body_field) if body_field else _field(header or query, header=bool(header))
    found = Stored(name, _hosts(hosts), place, field, variable or name, "sealed")
    ensure_packages(say)
    if from_env:
        found = found.replace(source="env", origin=(_variable(from_env),))
    elif from_file:
        found = found.replace(source="file", origin=(os.path.realpath(from_file),))
    elif from_command:
        found = found.replace(source="command", origin=(_program(command[0]), *command[1:]))
    elif from_credential:
        found = found.replace(source="credential", origin=(_credential(from_credential),))
    elif any(from_keyring):
        found = found.replace(source="keyring", origin=_entry(from_keyring))
    state = state_folder(os.environ)
    if found.source == "sealed":
        from tidegate.runtime.secret_sources import stand_in

        value = _asked(name)
        stand_in(found, value)  # it says what is wrong with a value now, not when a task starts
        found = secret_store.seal(state, found, value)
    secret_store.save(state, found)
    _note("secret.set", found)
    _warn_of_others(found)
    click.echo(
        f"{name}: {found.belongs()}; a task that is started with --secret {name} has a stand-in in ${found.variable}"
    )
    return 0


@secret.command("list")
def list_secrets() -> int:
    """Show all secrets, without values."""
    from tidegate.runtime.secret_sources import source_of

    state = state_folder(os.environ)
    names = secret_store.names(state)
    if not names:
        say("there is no secret: tidegate secret set NAME --host HOST keeps one")
    for name in names:
        try:
            found = secret_store.load(state, name)
        except StartError as error:
            say(str(error))
            continue
        click.echo(f"{name} · {found.belongs()} · in ${found.variable} · from {source_of(found)}")
    return 0


@secret.command()
@click.argument("name")
def forget(*, name: str) -> int:
    """Remove a secret. Commands that run keep it until they end; a task's next command does not begin without it."""
    if not secret_store.forget(state_folder(os.environ), name):
        raise UsageError(f"there is no secret {name!r}", fix="see tidegate secret list")
    _note("secret.forgotten", name)
    click.echo(f"{name} is forgotten")
    return 0


@secret.command()
@click.argument("name")
def test(*, name: str) -> int:
    """Ask the source of a secret for its value. Shows what a task would see in its place."""
    ensure_packages(say)
    from tidegate.runtime.secret_sources import source_of, stand_in

    state = state_folder(os.environ)
    found = secret_store.load(state, name)
    shape = stand_in(found, _of_source(found, state)).decode("ascii")
    _warn_of_others(found)
    click.echo(f"{name}: {source_of(found)} gives a value; a task sees something like {shape} in ${found.variable}")
    return 0


def _of_source(found: Stored, state: str) -> bytes:
    """Return the value. Ctrl-C ends a source that takes its time, too: it is in no terminal's group of processes."""
    import signal

    from tidegate.runtime.secret_sources import value_of

    before = signal.getsignal(signal.SIGINT)
    if before != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return value_of(found, state, os.environ)
    finally:
        signal.signal(signal.SIGINT, before)


def _note(kind: str, found: Stored | str) -> None:
    """Write down that it was set or forgotten: names and hosts, never what it is or where it comes from (JRN-5)."""
    from tidegate.runtime.audit import note

    about = {"secret": found} if isinstance(found, str) else {"secret": found.name, "belongs": found.belongs()}
    note(state_folder(os.environ), kind, clock=time.time, warn=say, **about)  # noqa: TID251  the clock comes in here


def _warn_of_others(found: Stored) -> None:
    from tidegate.runtime.secret_sources import open_to_others

    if open_to_others(found):
        say(f"warning: every user of this machine can read or change {found.origin[0]}: chmod 600 {found.origin[0]}")


def _hosts(texts: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    if not texts:
        raise UsageError("a secret needs a host", fix="--host api.example.com")
    found = []
    for text in texts:
        if "://" in text:
            host = text.partition("://")[2].partition("/")[0]
            raise UsageError(f"--host {text!r}: a secret is for a host, not a URL", fix=f"--host {host}")
        try:
            one = parse_authority(text, _HTTPS)
        except (HostError, PortError) as error:
            raise UsageError(
                f"--host {text!r}: {error}", fix="--host api.example.com, or with a port behind ':'"
            ) from None
        found.append((one.host.text, one.port))
    return tuple(dict.fromkeys(found))


def _refuse_a_taken_variable(name: str) -> None:
    from tidegate.runtime.client_settings import SETTINGS, TRUST

    if name in _NEEDED or name.startswith("LD_") or any(name == setting[0] for setting in (*SETTINGS, *TRUST)):
        raise UsageError(
            f"a task needs ${name} for something else, so no stand-in can be in it", fix="--env VAR names another"
        )


def _field(text: str, *, header: bool) -> str:
    if header and not (text and _TOKEN.issuperset(text.lower())):
        raise UsageError(f"{text!r} is not a header name", fix="--header X-Api-Key")
    if header and text.lower() in _OURS:
        raise UsageError(f"the header {text} is the gate's", fix="--header X-Api-Key")
    if not text.isascii() or not text.isprintable() or any(c in " &=#%" for c in text):
        raise UsageError(f"{text!r} is not a parameter name", fix="--query key")
    return text


def _path(text: str) -> str:
    if not all(text.split(".")):
        raise UsageError(
            f"--body-field {text!r} has an empty part between its dots", fix="keys from the outermost on: auth.token"
        )
    return _field(text, header=False)


def _variable(text: str) -> str:
    if "=" in text or "\0" in text:
        raise UsageError(f"--from-env {text!r} is not a variable name", fix="--from-env API_TOKEN")
    return text


def _credential(text: str) -> str:
    if "/" in text or text in {".", ".."}:
        raise UsageError(f"{text!r} is not a credential name", fix="as in LoadCredential=NAME:…, without a folder")
    return text


def _entry(named: tuple[str, str]) -> tuple[str, str]:
    if not all(named) or any(text.startswith("-") for text in named):
        raise UsageError("an entry of a keyring has a service and a user", fix="--from-keyring github.com me")
    return named


def _program(text: str) -> str:
    # As it is now: what a task may write must not be what is found along PATH later.
    found = shutil.which(text)
    if found is None:
        raise UsageError(f"there is no program {text!r}", fix="name one along PATH, or with its path")
    return os.path.abspath(found)


def _asked(name: str) -> bytes:
    if sys.stdin is not None and sys.stdin.isatty():
        import getpass

        text = getpass.getpass(f"value of {name} (not shown): ")
        return text.encode("utf-8", "surrogateescape")
    value = b"" if sys.stdin is None else sys.stdin.buffer.readline(1 << 16)
    return value.rstrip(b"\r\n")
