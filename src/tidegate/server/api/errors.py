"""The one form of an error in the API: `{"error": {"code", "what", "fix"}}`.

Rules of the file: `code` is stable and for programs, `what` is one sentence for people, `fix` says what to send or run
instead ('' where nothing would help). Only printable text goes out (ASK-6). A bug says that it is one and no more:
its trace goes to the server's own standard error, never into an answer.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tidegate.model.errors import TidegateError, UsageError
from tidegate.server.api.writing import to_json

_STATUS_CODES: Final = {
    400: "malformed",
    401: "no-token",
    403: "not-allowed",
    404: "not-found",
    405: "method",
    409: "conflict",
    413: "too-large",
    415: "media-type",
    421: "wrong-host",
    429: "too-many",
    500: "bug",
    503: "busy",
}


class Failure(msgspec.Struct, frozen=True):
    """Why a request was refused."""

    code: str
    what: str
    fix: str = ""


class ErrorAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The body of every answer with a status of 400 or above. A 409 on a question carries the question as it is."""

    error: Failure
    question: dict[str, Any] | None = None


class ApiError(Exception):
    """A request that is refused: an HTTP status and what the error form holds.

    `code` is taken from the status where it is not given; `headers` go out with the answer; `question` is what a lost
    race found instead.
    """

    def __init__(
        self,
        status: int,
        what: str,
        *,
        fix: str = "",
        code: str = "",
        headers: dict[str, str] | None = None,
        question: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(what)
        self.status = status
        self.what = what
        self.fix = fix
        self.code = code or _STATUS_CODES[status]
        self.headers = headers or {}
        self.question = question

    def body(self) -> bytes:
        """Return the answer's body."""
        failure = Failure(self.code, safe(self.what), safe(self.fix))
        return to_json(ErrorAnswer(failure, self.question))


def from_tidegate(error: TidegateError) -> ApiError:
    """Return what the API answers where the house raised `error`: the caller's mistake is 400, the rest 409."""
    return ApiError(400 if isinstance(error, UsageError) else 409, error.what, fix=error.fix, code=error.code)


def safe(text: str) -> str:
    """Return the text with all that is not printable escaped: what is at fault is often quoted."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
