"""What happened to one connection: the line of the journal before it is text (JRN-1)."""

from __future__ import annotations

from tidegate.model.reason import Reason
from tidegate.model.value import Value
from tidegate.model.verdict import How, Phase, Verdict


class Event(Value, hot=True):
    """One connection, or one request on a keep-alive connection, from the gate's point of view.

    `at` is Unix time in seconds when it began; `duration` is in seconds. `host` is canonical, or the escaped
    raw text where it never became a host (at most 256 bytes, only printable ASCII). `status` is the HTTP
    status the client got, 0 where it got none. `bytes_up` flow away from the task. `count` is above one where
    equal refusals were folded; `fix` is the decision's: what would allow it. `detail` says what the
    client's first bytes inside a tunnel were: `tls`, `tls-no-sni`, `clear-http`, `ssh`, `other`, or '' where there
    were none. `kept` says that it stayed open when its task was moved to another phase (POL-7). `seen` is the number
    under which it was shown while it was open, 0 where nobody looked; it is not part of the record. `path` is there for
    a call to a model service that was refused (INS-8), without its query. Never in it: header values, query strings,
    bodies, credentials (JRN-5).
    """

    at: float
    task: str
    phase: Phase
    verdict: Verdict
    rule: str
    name: str
    source: str
    host: str
    port: int
    reason: Reason
    how: How
    address: str = ""
    status: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    duration: float = 0.0
    method: str = ""
    count: int = 1
    detail: str = ""
    fix: str = ""
    kept: bool = False
    seen: int = 0
    path: str = ""
