"""`--report FILE`: what the `net:` lines say, as JSON for machines (JRN-1)."""

from __future__ import annotations

import json

from tidegate.journal.summary import FIELDS

COUNT = FIELDS.index("count")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.journal.summary import Row


def report_text(rows: Sequence[Row], more: int, *, exit_status: int) -> str:
    """Return the report: one object with `connections`, how many did not fit, and the exit status of the run."""
    connections = [dict(zip(FIELDS, row, strict=True)) for row in rows]
    refused = sum(int(row[COUNT]) for row in rows if row[3] == "refused")
    report = {"exit": exit_status, "refused": refused, "more": more, "connections": connections}
    return json.dumps(report, indent=1) + "\n"
