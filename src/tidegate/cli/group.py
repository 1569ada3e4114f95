"""The click commands: everything but `run`.

Click's own errors are mapped here, so that a mistake in any command looks the same: one line, exit 2.
"""

from __future__ import annotations

from importlib import import_module

import click

from tidegate.model.errors import EXIT_USAGE, UsageError

COMMANDS = {
    "policy": ("policy", "policy_group"),
    "events": ("events", "events"),
    "log": ("log", "log"),
    "doctor": ("doctor", "doctor"),
    "serve": ("serve", "serve"),
    "task": ("task", "task"),
    "attach": ("attach", "attach"),
    "questions": ("questions", "questions"),
    "answer": ("questions", "answer"),
    "watch": ("watch", "watch"),
    "rules": ("rules", "rules"),
    "settings": ("settings", "settings"),
    "sinks": ("sinks", "sinks"),
    "allow": ("living", "allow"),
    "deny": ("living", "deny"),
    "pause": ("living", "pause"),
    "resume": ("living", "resume"),
    "cut": ("living", "cut"),
    "secret": ("secret", "secret"),
    "tools": ("tools", "tools"),
    "token": ("token", "token"),
    "portal": ("portal", "portal"),
    "relay-image": ("relay_image", "relay_image"),
}
"""Each command's module in this package, and its name there."""


class _Group(click.Group):
    """Imports the module of the command that was named, and no other."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return all names."""
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        """Return one command."""
        return find_command(name) if name in COMMANDS else None


def find_command(name: str) -> click.Command:
    """Return the command of this name.

    Raises:
        KeyError: when there is none.
    """
    module, attribute = COMMANDS[name]
    found = getattr(import_module(f"tidegate.cli.{module}"), attribute)
    command: click.Command = found if isinstance(found, click.Command) else found()
    return command


def run_click(argv: list[str]) -> int:
    """Run a click command and return its exit status.

    Raises:
        UsageError: for a mistake on the command line.
    """
    try:
        status = _Group("tidegate").main(argv, prog_name="tidegate", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return EXIT_USAGE
    except click.ClickException as error:
        fix = f"see {error.ctx.command_path} --help" if isinstance(error, click.UsageError) and error.ctx else ""
        raise UsageError(error.format_message().rstrip("."), fix=fix) from None
    except click.exceptions.Abort:
        return 130
    except click.exceptions.Exit as error:
        return error.exit_code
    return status if isinstance(status, int) else 0
