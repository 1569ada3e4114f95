"""What reads the body of a request on its way up (GAT-4, INS-6).

Rules of the file: a body is validated by its framing and passes as it came, but where a rule lets its POST pass and not
what a field of it may ask for (wire/method_fields.py): that is looked through as it streams, and framed anew.
"""

from __future__ import annotations

from tidegate.gate.cleaned import CleanedBody
from tidegate.model.reason import Reason
from tidegate.policy.alternatives import posts_only
from tidegate.wire.body import make_body
from tidegate.wire.framing import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.gate.request import Request
    from tidegate.model.decision import Decision
    from tidegate.wire.body import Body
    from tidegate.wire.method_fields import MethodFields


def body_of(request: Request, decision: Decision) -> Body | CleanedBody | None:
    """Return what reads the body of a request that the decision lets pass; None where it has none.

    Raises:
        MethodFieldError: nobody can say what method its body asks for.
    """
    framing = request.framing
    if framing.empty:
        return None
    look = _look(request, decision)
    if look is None:
        return make_body(framing)
    return CleanedBody(framing, look, chunked=framing.kind is Kind.CHUNKED, bad=Reason.BAD_FRAMING)


def look_through(request: Request, decision: Decision, content: bytes) -> None:
    """Look through the body of such a request that is whole.

    Raises:
        MethodFieldError: a field of it asks for another method, or may.
    """
    look = _look(request, decision)
    if look is not None:
        look.feed(content)


def _look(request: Request, decision: Decision) -> MethodFields | None:
    if request.method != "POST" or not posts_only(decision, request.path):
        return None
    from tidegate.wire.method_fields import method_fields

    return method_fields(request.head.headers)
