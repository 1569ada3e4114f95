"""The action log: a page of it, and whether its chain holds (JRN-2)."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from tidegate.journal.segments import newest
from tidegate.journal.verify import verify
from tidegate.runtime.state import key_folder, log_folder
from tidegate.server.api.answers import LogPage, LogVerdict
from tidegate.server.api.errors import ApiError
from tidegate.server.api.operation import Call, Operation, Operations
from tidegate.server.api.requests import LogQuery
from tidegate.server.background import in_thread

if TYPE_CHECKING:
    from tidegate.server.api.context import Context


class LogOperations(Operations):
    """The operations; see the head of the file."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._verifying = False

    def operations(self) -> list[Operation]:
        """Return them."""
        return [
            Operation(
                method="GET",
                path="/api/log",
                summary="The action log, newest first; before is the seq of the last line seen",
                do=self.page,
                query=LogQuery,
                answer=LogPage,
            ),
            Operation(
                method="GET",
                path="/api/log/verify",
                summary="Whether the chain of the action log holds; it is read whole",
                do=self.verify,
                answer=LogVerdict,
            ),
        ]

    async def page(self, call: Call) -> dict[str, Any]:
        """Return a page."""
        query = call.query
        kinds = (query.type,) if query.type else ()

        def read() -> list[dict[str, Any]]:
            lines = newest(
                log_folder(self._context.server.state), before=query.before or 0, kinds=kinds, task=query.task or ""
            )
            return list(islice(lines, query.limit))

        try:
            return {"lines": await in_thread(read)}
        except OSError as error:
            raise _unreadable(error) from None

    async def verify(self, _call: Call) -> dict[str, Any]:
        """Look at the whole log; one look at a time, for it reads up to a gigabyte."""
        if self._verifying:
            raise ApiError(503, "the log is being verified already", fix="try again when that has ended")
        self._verifying = True
        state = self._context.server.state
        try:
            found = await in_thread(verify, log_folder(state), key_folder(state))
        except OSError as error:
            raise _unreadable(error) from None
        finally:
            self._verifying = False
        findings = [{"file": one.file, "line": one.line, "what": one.what} for one in found.findings]
        return {
            "ok": found.ok,
            "lines": found.lines,
            "sealed_to": found.head,
            "unfinished": found.unfinished,
            "findings": findings,
            "more": found.more,
        }


def _unreadable(error: OSError) -> ApiError:
    return ApiError(503, f"the action log cannot be read: {error.strerror}", fix="tidegate log verify says which file")
