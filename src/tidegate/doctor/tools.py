"""Whether the tools that are declared can be run (SRV-6)."""

from __future__ import annotations

from tidegate.doctor.check import FAIL, OK, WARN, Check
from tidegate.model.errors import StartError, TidegateError
from tidegate.runtime.state import config_folder
from tidegate.runtime.tool_files import declared, missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def check_tools(environ: Mapping[str, str]) -> list[Check]:
    """Return a row for each tool, or for what is wrong with what declares them; none where there are none."""
    try:
        config = config_folder(environ)
    except StartError:
        return []  # the row of the state folder says it
    try:
        tools = declared(config)
    except TidegateError as error:
        return [Check("tools", FAIL, error.what.splitlines()[0], error.fix or "see docs/tools.md")]
    rows = []
    for tool in tools:
        why = missing(tool)
        if why:
            rows.append(Check(f"tool {tool.name}", WARN, why, f"install it, or change {tool.source}"))
        else:
            rows.append(Check(f"tool {tool.name}", OK, ", ".join(tool.hosts)))
    return rows
