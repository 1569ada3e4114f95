"""What a call of a tool comes to, the same for both ways in which a task asks (plain HTTP, MCP).

Rules of the file: a task is told what it can act on, and no more. What a program prints on standard error is the
person's; of one that failed the task gets the end, within bounds and with control characters escaped.
"""

from __future__ import annotations

from tidegate.inspect.strict_json import UnclearError, read
from tidegate.model.value import Value
from tidegate.tools.schema import fault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tidegate.tools.declaration import Tool
    from tidegate.tools.program import Ran

    Run = Callable[[Tool, bytes], "Called"]

MOST_PARTS = 50_000  # values of one input
MOST_SAID = 4096  # bytes of standard error that a task gets of a run that failed
_SENTENCES = {
    "failed": "the tool failed",
    "timeout": "the tool did not end in its time and was ended",
    "too-much-output": "the tool said more than it may and was ended",
    "not-started": "the tool could not be started; the person who declared it can see why",
    "cancelled": "the task is ending",
    "busy": "as many tools of this task run as may; try again when one has ended",
    "rate": "this tool was called as often as it may be in a minute; try again later",
    "lost": "the run of the tool was lost",
}


class Called(Value):
    """How a call ended: a word (`ok`, or see `_SENTENCES`, `no-json`, `bad-input`), its output, and one line."""

    word: str
    output: bytes = b""
    message: str = ""
    status: int = 0
    said: str = ""

    @property
    def ok(self) -> bool:
        """Whether the output is the tool's answer."""
        return self.word == "ok"


def refused(word: str) -> Called:
    """Return a call that was not made, or has no output."""
    return Called(word, message=_SENTENCES[word])


def ended(ran: Ran) -> Called:
    """Return what a run came to."""
    if ran.why == "ok":
        return Called("ok", ran.output)
    if ran.why == "not-started":
        return refused("not-started")
    message = _SENTENCES[ran.why]
    if ran.why == "failed":
        message += f" (signal {-ran.status})" if ran.status < 0 else f" (exit status {ran.status})"
    return Called(ran.why, message=message, status=ran.status, said=shown(ran.errors[-MOST_SAID:]))


def shown(data: bytes) -> str:
    """Return what a program printed as text without control characters but newlines."""
    text = data.decode("utf-8", "replace")
    return "".join(char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in text).strip()


def call(tool: Tool, data: bytes, run: Run) -> Called:
    """Look at an input, and run the tool with it. What the program gets are the bytes that were looked at."""
    if len(data) > tool.max_input_bytes:
        return Called("bad-input", message=f"the input is larger than the {tool.max_input_bytes} bytes it may have")
    try:
        value = read(data, MOST_PARTS)
    except UnclearError as error:
        return Called("no-json", message=f"the input is no JSON that every reader reads alike: {error}")
    return check_and_run(tool, value, data, run)


def check_and_run(tool: Tool, value: Any, data: bytes, run: Run) -> Called:
    """Do so with a value that was read from these bytes."""
    if len(data) > tool.max_input_bytes:
        return Called("bad-input", message=f"the input is larger than the {tool.max_input_bytes} bytes it may have")
    wrong = fault(tool.input_schema, value)
    if wrong:
        return Called("bad-input", message=wrong)
    return run(tool, data)
