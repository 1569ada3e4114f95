"""Secrets as the API shows them: what they are called and where they belong, never a value (SRV-2, INS-5)."""

from __future__ import annotations

from typing import Any

from tidegate.model.errors import StartError
from tidegate.runtime import secret_store
from tidegate.server.api.answers import Secrets
from tidegate.server.api.operation import Call, Operation, Operations
from tidegate.server.background import in_thread
from tidegate.server.task_secrets import shown_hosts


class SecretOperations(Operations):
    """The operations; see the head of the file. A secret is set on the command line: no value comes through here."""

    def operations(self) -> list[Operation]:
        """Return them."""
        return [
            Operation(
                method="GET",
                path="/api/secrets",
                summary="The secrets that tasks can be given, without values",
                do=self.listed,
                answer=Secrets,
            )
        ]

    async def listed(self, _call: Call) -> dict[str, Any]:
        """Return all that can be read, by name."""
        return {"secrets": await in_thread(_shown, self._context.server.state)}


def _shown(state: str) -> list[dict[str, Any]]:
    found = []
    for name in secret_store.names(state):
        try:
            one = secret_store.load(state, name)
        except StartError:
            continue  # `tidegate secret list` says what is wrong with it
        found.append(
            {
                "name": one.name,
                "hosts": shown_hosts(one.hosts),
                "place": one.place,
                "field": one.field,
                "variable": one.variable,
                "source": one.source,
            }
        )
    return found
