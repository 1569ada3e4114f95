"""Health, events, the document, and the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import Response

from tidegate.model.errors import StartError
from tidegate.questions.table import OPEN
from tidegate.server.api.answers import Health, SettingsAnswer
from tidegate.server.api.openapi import document
from tidegate.server.api.operation import ANYONE, OWNER, Call, Operation, Operations
from tidegate.server.api.requests import SettingsChange
from tidegate.server.api.task_policy import rows_of
from tidegate.server.background import in_thread
from tidegate.state.settings import changed, shown

if TYPE_CHECKING:
    from tidegate.server.api.context import Context


class General(Operations):
    """The operations; see the head of the file."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.document = b""

    def operations(self) -> list[Operation]:
        """Return them."""
        return [
            Operation(method="GET", path="/api/health", summary="The server answers", do=self.health, answer=Health),
            Operation(
                method="GET",
                path="/api/events",
                summary="What happens, as it happens (server-sent events; Last-Event-ID goes on after that one)",
                do=self.events,
                answer="text/event-stream",
            ),
            Operation(
                method="GET",
                path="/api/openapi.json",
                summary="This document",
                do=self.openapi,
                answer="application/json",
                role=ANYONE,
            ),
            Operation(
                method="GET",
                path="/api/settings",
                summary="What applies to tasks that say nothing of their own",
                do=self.settings,
                answer=SettingsAnswer,
            ),
            Operation(
                method="PATCH",
                path="/api/settings",
                summary="Change some settings, for tasks to come",
                do=self.change_settings,
                body=SettingsChange,
                answer=SettingsAnswer,
                role=OWNER,
                errors=(409,),
            ),
        ]

    def publish(self, operations: list[Operation]) -> None:
        """Make the document of all operations."""
        self.document = msgspec.json.encode(document(operations))

    async def health(self, call: Call) -> Health:
        """See SRV-2."""
        server = self._context.server
        return Health(
            ok=True,
            version=server.version,
            started=server.started,
            role=call.caller.role.value,
            living=len(server.registry.living()),
            open_questions=sum(question.state in OPEN for question in server.desk.questions()),
            failing_sinks=server.sinks.failing(),
        )

    async def events(self, call: Call) -> Response:
        """Stream what the bus says; an owner who reads it counts as somebody who is there (ASK-4)."""
        seen = self._context.server.presence.seen if call.caller.is_owner else _nobody
        return self._context.streams.respond(call.request, call.caller.token, seen)

    async def openapi(self, _call: Call) -> Response:
        """Return the document."""
        return Response(self.document, media_type="application/json")

    async def settings(self, _call: Call) -> dict[str, Any]:
        """Return the settings in force."""
        return self._shown()

    async def change_settings(self, call: Call) -> dict[str, Any]:
        """Change those that are given (POL-13). The answer and the bus have all of them."""
        server = self._context.server
        given: SettingsChange = call.body
        changes = {name: value for name in given.__struct_fields__ if (value := getattr(given, name)) is not None}
        rows_of(given.default_hosts or (), "", "")  # raises where one is no rule
        key = changes.pop("webhook_key", None)
        ways = server.ways
        if ways is not None:
            held = [name for name in ways.fixed if name in changes or (name == "webhook" and key is not None)]
            if held:
                raise StartError(
                    f"{held[0]} is held by the command line of serve", fix="start it without that", code="fixed"
                )
            wanted = changed(server.settings, changes)
            ways.check(wanted, key)
            await in_thread(ways.save, wanted, key)
        settings = await in_thread(server.store.patch_settings, changes)
        server.settings_changed(settings, call.caller.by)
        return self._shown()

    def _shown(self) -> dict[str, Any]:
        server = self._context.server
        return shown(server.settings) | server.ways_shown()


def _nobody() -> None:
    """Do not count a viewer, who cannot answer."""
