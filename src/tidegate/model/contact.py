"""A line of a task's record as it is read again: whom the task reached or tried, when, and what became of it (JRN-7).

An Event is what the gate says of a connection; this is what a reader may believe of a line that somebody hands it. The
host is text that was never checked, and `reason` may be a word of another version.
"""

from __future__ import annotations

from tidegate.model.tools import NAME, PORT, RULE, SOURCE
from tidegate.model.value import Value
from tidegate.model.verdict import How, Phase


class Contact(Value, hot=True):
    """One line: `count` connections or requests of one kind.

    `at` is ISO 8601 in UTC as the line has it, '' where a report knows no time; as texts they sort by time. `host` is
    whatever the line says, `port` 0 where there was none. `name` and `source` are the governing rule's. `method` is
    what the journal has in its place for what is no HTTP (`CONNECT`, `TCP`, `SOCKS5`, `DNS`).
    """

    at: str
    phase: Phase
    host: str
    port: int
    how: How
    reason: str
    name: str = ""
    source: str = ""
    address: str = ""
    method: str = ""
    count: int = 1

    @property
    def passed(self) -> bool:
        """Whether bytes could move, outward."""
        return self.how is not How.REFUSED and self.how is not How.PUBLISHED

    @property
    def of_tools(self) -> bool:
        """Whether it is a connection to the task's own tools (`run --tool`), which no policy names (SRV-6)."""
        return (self.source, self.name, self.host, self.port) == (SOURCE, RULE, NAME, PORT)
