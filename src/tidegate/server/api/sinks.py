"""Sinks of the action log: how they are doing, and setting them (JRN-6). Keys are taken and never given."""

from __future__ import annotations

from typing import Any

from tidegate.journal.sinks.definition import Definition, Keys
from tidegate.journal.sinks.sink import TAKEN
from tidegate.server.api.answers import Done, SinkAnswer, SinkAnswers, SinkTestAnswer
from tidegate.server.api.errors import ApiError
from tidegate.server.api.operation import OWNER, Call, Operation, Operations
from tidegate.server.api.requests import SinkChange
from tidegate.server.background import in_thread


class SinkOperations(Operations):
    """The operations; see the head of the file."""

    def operations(self) -> list[Operation]:
        """Return them."""
        return [
            Operation(
                method="GET",
                path="/api/sinks",
                summary="What follows the action log, and how far it has come",
                do=self.listed,
                answer=SinkAnswers,
            ),
            Operation(
                method="PUT",
                path="/api/sinks/{name}",
                summary="Set a sink; one of this name goes on where it was",
                do=self.put,
                body=SinkChange,
                answer=SinkAnswer,
                role=OWNER,
            ),
            Operation(
                method="POST",
                path="/api/sinks/{name}/test",
                summary="Send a sink one record that says that it is a test, and tell what its receiver answered",
                do=self.test,
                answer=SinkTestAnswer,
                role=OWNER,
                errors=(404,),
            ),
            Operation(
                method="DELETE",
                path="/api/sinks/{name}",
                summary="Have a sink no more; its position is forgotten",
                do=self.remove,
                answer=Done,
                role=OWNER,
                errors=(404,),
            ),
        ]

    async def listed(self, _call: Call) -> dict[str, Any]:
        """Return all of them."""
        return {"sinks": await in_thread(self._context.server.sinks.shown)}

    async def put(self, call: Call) -> dict[str, Any]:
        """Set one. Who did it is in the log, with its host."""
        server = self._context.server
        body: SinkChange = call.body
        name = call.path["name"]
        definition = Definition(
            name, body.url, tuple(body.types), body.min, clear=body.clear, ca=body.ca, key_header=body.key_header,
            cert=body.client_cert, proxy=body.proxy,
        )  # fmt: skip
        keys = Keys(*(one.encode() if one is not None else None for one in (body.key, body.client_key, body.proxy_key)))
        try:
            await in_thread(lambda: server.sinks.put(definition, keys, from_start=body.from_start))
        except OSError as error:
            raise ApiError(503, f"the sink cannot be kept: {error.strerror}", fix="see the disk of the state") from None
        server.log.append("sink.set", sink=name, to=f"{definition.kind} at {definition.host}", by=call.caller.by)
        found = await in_thread(server.sinks.shown)
        return next(one for one in found if one["name"] == name)

    async def test(self, call: Call) -> SinkTestAnswer:
        """Try one."""
        name = call.path["name"]
        found = await in_thread(self._context.server.sinks.test, name)
        if found is None:
            raise self._none(name)
        definition, outcome = found
        return SinkTestAnswer(
            name=definition.name,
            kind=definition.kind,
            host=definition.host,
            taken=outcome.state == TAKEN,
            answer=outcome.why or "it does not answer",
        )

    def _none(self, name: str) -> ApiError:
        known = ", ".join(self._context.server.sinks.names())
        fix = f"one of {known}" if known else "tidegate sinks set NAME URL"
        return ApiError(404, f"there is no sink {name[:40]!r}", fix=fix, code="no-such-sink")

    async def remove(self, call: Call) -> Done:
        """Remove one."""
        server = self._context.server
        name = call.path["name"]
        try:
            found = await in_thread(server.sinks.remove, name)
        except OSError as error:
            raise ApiError(503, f"the sink cannot be removed: {error.strerror}", fix="see the state folder") from None
        if found is None:
            raise self._none(name)
        server.log.append("sink.removed", sink=name, to=f"{found.kind} at {found.host}", by=call.caller.by)
        return Done()
