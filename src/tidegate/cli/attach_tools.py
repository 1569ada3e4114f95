"""The tools of a task in a container of somebody else's launcher (SRV-6, HLD-4): a keeper beside `attach`.

The container's task was created with them, and has no others. They are there as long as the gate is, behind the next
server too; what the container can write decides which programs may be run for it, and whether what declares them is
believed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tidegate.cli.run import order_of
from tidegate.cli.run_options import parse_run
from tidegate.holds.mountinfo import is_within
from tidegate.model.errors import StartError
from tidegate.runtime.state import config_folder
from tidegate.runtime.tool_files import fenced, steps, tools_of
from tidegate.runtime.tool_link import ToolKeeper
from tidegate.runtime.trust import roots_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from tidegate.holds.container.attaching import Attached
    from tidegate.runtime.server_link import ServerLink
    from tidegate.tools.declaration import Tool


class AttachedTools:
    """The keeper of a container's tools. `told` is what the server says of its task.

    Raises:
        UsageError, StartError: where one is not declared, cannot run, or it or what declares it is within what the
            container can write.
    """

    def __init__(self, told: dict[str, Any], attached: Attached) -> None:
        tools = tools_of(told["tools"], config_folder(os.environ))
        order = order_of(parse_run(["--", "attach"]), new_log=False)
        # It sees of this machine what is mounted into it: that its files are strict is nothing that it could be told.
        writable = attached.writable()
        _declared_elsewhere(tools, writable)
        order = order.replace(task=told["task"], folder=told["folder"], writable=(*order.writable, *writable))
        self._keeper = ToolKeeper(fenced(order, tools, ""), tools)

    def join(self, link: ServerLink) -> None:
        """Have a server lead to them, once it has said whom to trust."""
        link.tools = self._keeper.channel.fileno()
        self._keeper.tell(roots_of(os.environ) if link.authority else "", link.authority)

    def finish(self) -> list[str]:
        """End them and what they run; return what a person is told. Later calls return the same."""
        self._keeper.finish()
        return self._keeper.lines


def _declared_elsewhere(tools: Iterable[Tool], writable: Sequence[str]) -> None:
    """See that the container cannot have said itself what its tools are: in no hold is their file hidden from it.

    Raises:
        StartError: where it can write that file, or what leads to it.
    """
    places = [os.path.realpath(path) for path in writable]
    for path in dict.fromkeys(tool.source.rsplit(":", 2)[0] for tool in tools):
        within = next((place for step in steps(path) for place in places if is_within(step, place)), "")
        if within:
            raise StartError(
                f"the container can write {path!a}, which says what its tools run",
                fix=f"start it without {within!a}, or mounted to be read",
                code="tools",
            )
