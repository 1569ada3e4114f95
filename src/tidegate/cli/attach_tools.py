"""The tools of a task in a container of somebody else's launcher (SRV-6, HLD-4): a keeper beside `attach`.

The container's task was created with them, and has no others. They are there as long as the gate is, behind the next
server too; what the container can write decides which programs may be run for it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tidegate.cli.run import order_of
from tidegate.cli.run_options import parse_run
from tidegate.runtime.state import config_folder
from tidegate.runtime.tool_files import fenced, tools_of
from tidegate.runtime.tool_link import ToolKeeper
from tidegate.runtime.trust import roots_of

if TYPE_CHECKING:
    from typing import Any

    from tidegate.holds.container.attaching import Attached
    from tidegate.runtime.server_link import ServerLink


class AttachedTools:
    """The keeper of a container's tools. `told` is what the server says of its task.

    Raises:
        UsageError, StartError: where one is not declared, cannot run, or is within what the container can write.
    """

    def __init__(self, told: dict[str, Any], attached: Attached) -> None:
        tools = tools_of(told["tools"], config_folder(os.environ))
        order = order_of(parse_run(["--", "attach"]), new_log=False)
        # It sees of this machine what is mounted into it: that its files are strict is nothing that it could be told.
        order = order.replace(task=told["task"], folder=told["folder"], writable=(*order.writable, *attached.writable))
        self._keeper = ToolKeeper(fenced(order, tools, ""), tools)

    def join(self, link: ServerLink) -> None:
        """Have a server lead to them, once it has said whom to trust."""
        link.tools = self._keeper.channel.fileno()
        self._keeper.tell(roots_of(os.environ) if link.authority else "", link.authority)

    def finish(self) -> list[str]:
        """End them and what they run; return what a person is told. Later calls return the same."""
        self._keeper.finish()
        return self._keeper.lines
