"""Tools as the API shows them: what they are called and the hosts that they talk to (SRV-2, SRV-3, SRV-6).

Which tools a command has is said where it begins, or where its task was created; which of them a task may be created
with is said where the server begins (task_tools.py). Nothing is declared or offered through here, and what a program
is, and what it is run with, is not shown.
"""

from __future__ import annotations

import os
from typing import Any

from tidegate.model.errors import TidegateError
from tidegate.runtime.state import config_folder
from tidegate.runtime.tool_files import declared, missing
from tidegate.server.api.answers import Tools
from tidegate.server.api.operation import Call, Operation, Operations
from tidegate.server.background import in_thread


class ToolOperations(Operations):
    """The operations; see the head of the file."""

    def operations(self) -> list[Operation]:
        """Return them."""
        return [
            Operation(
                method="GET",
                path="/api/tools",
                summary="The tools that commands can be given, with their hosts",
                do=self.listed,
                answer=Tools,
            )
        ]

    async def listed(self, _call: Call) -> dict[str, Any]:
        """Return all that are declared; `problem` says why there are none where the declaration is wrong."""
        return await in_thread(_shown, self._context.server.registry.tools)


def _shown(offers: tuple[str, ...]) -> dict[str, Any]:
    try:
        tools = declared(config_folder(os.environ))
    except TidegateError as error:
        return {"tools": [], "problem": error.what.splitlines()[0]}
    return {
        "tools": [
            {
                "name": tool.name,
                "description": tool.description,
                "hosts": list(tool.hosts),
                "apply_task_hosts": tool.apply_task_hosts,
                "source": tool.source,
                "works": not missing(tool),
                "for_tasks": tool.name in offers,
            }
            for tool in tools
        ],
        "problem": "",
    }
