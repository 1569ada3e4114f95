"""`tidegate policy …`: read, explain, compare and test policies. Nothing here starts a task or makes a look-up."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import click


def policy_group() -> click.Group:
    """Return the click group `policy` with all its commands."""
    from tidegate.cli.policy.group import make_policy_group

    return make_policy_group()
