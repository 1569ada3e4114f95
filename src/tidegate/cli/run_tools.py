"""`--tool NAME` of `run` and `exec`: nothing of tools is loaded where none is named."""

from __future__ import annotations

import os

from tidegate.runtime.state import config_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tidegate.runtime.link import Link
    from tidegate.runtime.task import Ended, Order


def with_named_tools(
    names: Sequence[str], order: Order, files: str, link: Link
) -> tuple[Order, Callable[[Callable[[], Ended]], Ended]]:
    """Return the order for a command with these tools, and what acts while they are offered.

    Raises:
        UsageError, StartError: where there is no such tool, or the command could change what one runs.
    """
    if not names:
        return order, lambda act: act()
    from tidegate.runtime.tool_files import fenced, tools_of
    from tidegate.runtime.tool_link import with_tools

    tools = tools_of(names, config_folder(os.environ))
    order = fenced(order, tools, files)
    return order, lambda act: with_tools(order, tools, link, act)
