"""Where hosts that are read have sent a task lately, so that a refusal can say so (B125, INS-5).

Rules of the file: only for words. What a redirect leads to is judged as everything is, and gets no secret of
another. A few are kept for each task, by where they lead; the last one counts.
"""

from __future__ import annotations

from tidegate.model.destination import Destination, PortError, parse_authority
from tidegate.model.host import HostError
from tidegate.model.verdict import Verdict
from tidegate.wire.refusal import refusal_response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.gate.task import GateTask

MOST = 64
LONGEST = 2048  # bytes of a Location; browsers send what is longer, and lose nothing by our silence
_PORTS = {b"https": 443, b"http": 80}


def note_redirect(task: GateTask, origin: Destination, location: bytes) -> None:
    """Take note of the Location of an answer of `origin`."""
    found = _leads_to(location)
    if found is None or found == origin:
        return
    redirects = task.redirects
    redirects.pop(found, None)
    while len(redirects) >= MOST:
        del redirects[next(iter(redirects))]
    redirects[found] = origin
    plan = task.plan(found)
    if plan.decision.verdict is Verdict.DENY:
        # What refuses it is rendered once, and is the same for a tunnel and a plain request.
        decision = plan.decision
        line = f"{decision.sentence()} ({came_from(task, found)})"
        plan.refusal = refusal_response(decision.reason, line, fix=decision.fix)


def came_from(task: GateTask, destination: Destination) -> str:
    """Say who has sent the task there, '' where nobody has."""
    origin = task.redirects.get(destination)
    return "" if origin is None else f"redirected from {origin}"


def _leads_to(location: bytes) -> Destination | None:
    scheme, mark, rest = location[:LONGEST].partition(b"//")
    port = _PORTS.get(scheme.lower().rstrip(b":")) if scheme else 443
    if not mark or port is None or len(location) > LONGEST:
        return None
    for end in (b"/", b"?", b"#"):
        rest = rest.partition(end)[0]
    try:
        return parse_authority(rest.rpartition(b"@")[2].decode("ascii"), port)
    except (HostError, PortError, UnicodeDecodeError):
        return None
