"""The secrets of a tool: values for its program, and stand-ins for whoever hears what it says (SRV-6, INS-5).

A program that fails may print what it was given: a trace with the headers of a request, say. In what goes to the task,
and into the log of standard error, each value has a stand-in of its shape in its place, in the forms of scrub.py.
"""

from __future__ import annotations

import os

from tidegate.inspect.scrub import Scrubber
from tidegate.runtime.inspection import keep_no_core
from tidegate.runtime.secret_sources import stand_in, value_of
from tidegate.runtime.secret_store import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tidegate.tools.program import Ran


class ToolSecrets:
    """`variables` are those of the program. `asker` is a socket: a source is not waited for when its other end closes.

    Raises:
        StartError: where a value cannot be had.
    """

    def __init__(self, names: Iterable[str], state: str, environ: Mapping[str, str], asker: int) -> None:
        keep_no_core()
        self.variables: dict[str, str] = {}
        pairs = []
        for name in names:
            stored = load(state, name)
            value = value_of(stored, state, environ, asker=asker)
            pairs.append((value, stand_in(stored, value)))
            self.variables[stored.variable] = os.fsdecode(value)
        self._scrubber = Scrubber(pairs)

    def cover(self, ran: Ran) -> Ran:
        """Return a run without values in what the program said."""
        return ran.replace(output=self._scrubber.all(ran.output), errors=self._scrubber.all(ran.errors))
