"""`/metrics`: for Prometheus and whatever else scrapes its formats (JRN-6). A viewer's token reads it."""

from __future__ import annotations

from starlette.responses import Response

from tidegate.server.api.operation import Call, Operation, Operations
from tidegate.server.exposition import content_type, text
from tidegate.server.metrics import families


class MetricsOperations(Operations):
    """The operation; see the head of the file."""

    def operations(self) -> list[Operation]:
        """Return it."""
        return [
            Operation(
                method="GET",
                path="/metrics",
                summary="Counts and gauges in Prometheus' text format, or OpenMetrics where Accept names it",
                do=self.metrics,
                answer="text/plain",
            )
        ]

    async def metrics(self, call: Call) -> Response:
        """Return all of them in the format that is asked for."""
        kind = content_type(call.request.headers.get("accept", ""))
        return Response(text(families(self._context.server), kind), headers={"Content-Type": kind})
