"""A client of the Model Context Protocol's own package, run in a task by test_mcp.py: what it was told, as JSON."""

from __future__ import annotations

import asyncio
import json
import sys

from mcp import ClientSession
from mcp.client import streamable_http


async def main(url: str) -> None:
    """Speak to the tools at `url`."""
    connect = getattr(streamable_http, "streamable_http_client", None) or streamable_http.streamablehttp_client
    async with connect(url) as streams, ClientSession(streams[0], streams[1]) as session:
        begun = await session.initialize()
        listed = await session.list_tools()
        called = [await session.call_tool("shout", {"text": text}) for text in ("hey", 5)]
        try:
            await session.call_tool("other", {})
            error = ""
        except Exception as problem:  # noqa: BLE001 - the package has had two names for it
            error = str(problem)
    dumped = begun.model_dump(by_alias=True), *(one.model_dump(by_alias=True) for one in called)
    json.dump(
        {
            "version": dumped[0]["protocolVersion"],
            "tools": [one.name for one in listed.tools],
            "called": [(one["content"][0]["text"], one["isError"]) for one in dumped[1:]],
            "error": error,
        },
        sys.stdout,
    )


asyncio.run(main(sys.argv[1]))
