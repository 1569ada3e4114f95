"""The click commands: everything but `run`.

Click's own errors are mapped here, so that a mistake in any command looks the same: one line, exit 2.
"""

from __future__ import annotations

import click

from tidegate.model.errors import EXIT_USAGE, UsageError


def make_group() -> click.Group:
    """Return the group of all click commands."""
    from tidegate.cli.doctor import doctor
    from tidegate.cli.events import events
    from tidegate.cli.log import log
    from tidegate.cli.policy import policy_group

    group = click.Group("tidegate", help="The gate that agents, builds and scripts run behind.")
    group.add_command(policy_group())
    group.add_command(events)
    group.add_command(log)
    group.add_command(doctor)
    return group


def run_click(argv: list[str]) -> int:
    """Run a click command and return its exit status.

    Raises:
        UsageError: for a mistake on the command line.
    """
    try:
        status = make_group().main(argv, prog_name="tidegate", standalone_mode=False)
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
