"""The Model Context Protocol's side of tools: JSON-RPC 2.0 over its Streamable HTTP transport, without a session.

Spoken are the versions 2025-11-25 and 2025-06-18, of which a client gets the one it asks for, else the newest
(modelcontextprotocol.io, specification, basic/lifecycle and basic/transports). Each POST has one message: batches
went with 2025-06-18. A request is answered in the answer to its POST; a notification gets 202. No stream is offered.

Rules of the file: what is no message of this protocol is refused with its code (JSON-RPC 2.0 section 5.1); a tool that
fails, or whose input does not fit, answers with `isError`, so that a model can do better. Nothing is kept between
two messages. Pure, but for the tools it calls.
"""

from __future__ import annotations

import json

from tidegate import __version__
from tidegate.tools.calls import check_and_run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tidegate.tools.calls import Called, Run
    from tidegate.tools.declaration import Tool

VERSIONS = ("2025-11-25", "2025-06-18")
UNNAMED = "2025-03-26"  # what a request without MCP-Protocol-Version speaks (basic/transports): only its first message
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
_LONGEST_ID = 256


class RpcError(Exception):
    """A message that is answered with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def error_body(code: int, message: str, id_: str | float | None = None) -> dict[str, Any]:
    """Return an error as JSON-RPC writes it."""
    return {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": message}}


def version_fault(named: str | None) -> str:
    """Say what is wrong with the MCP-Protocol-Version of a request, '' where nothing is."""
    if named is None or named in VERSIONS:
        return ""
    return f"MCP-Protocol-Version is none of {', '.join(VERSIONS)}"


def answer(message: Any, tools: Mapping[str, Tool], run: Run) -> tuple[int, dict[str, Any] | None]:
    """Return the HTTP status and the message that answers one, None where there is none."""
    if isinstance(message, list):
        return 400, error_body(INVALID_REQUEST, "one message, please: batches are no part of this version")
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return 400, error_body(INVALID_REQUEST, "this is no message of JSON-RPC 2.0")
    if "method" not in message:
        is_answer = "id" in message and ("result" in message) != ("error" in message)
        return (202, None) if is_answer else (400, error_body(INVALID_REQUEST, "there is no method"))
    method = message["method"]
    if not isinstance(method, str):
        return 400, error_body(INVALID_REQUEST, "the method is no text")
    if "id" not in message:
        return 202, None
    id_ = message["id"]
    if isinstance(id_, bool) or not isinstance(id_, str | int | float) or len(str(id_)) > _LONGEST_ID:
        return 400, error_body(INVALID_REQUEST, "an id is a text or a number")
    params = message.get("params", {})
    if not isinstance(params, dict):
        return 200, error_body(INVALID_PARAMS, "params are an object", id_)
    try:
        result = _result(method, params, tools, run)
    except RpcError as error:
        return 200, error_body(error.code, str(error), id_)
    return 200, {"jsonrpc": "2.0", "id": id_, "result": result}


def _result(method: str, params: dict[str, Any], tools: Mapping[str, Tool], run: Run) -> dict[str, Any]:
    if method == "initialize":
        return _initialize(params)
    if method == "ping":
        return {}
    if method == "tools/list":
        if params.get("cursor") is not None:
            raise RpcError(INVALID_PARAMS, "there is no such cursor: the list has one page")
        return {"tools": [listed(tool) for tool in tools.values()]}
    if method == "tools/call":
        return _call(params, tools, run)
    raise RpcError(METHOD_NOT_FOUND, "there is no such method")


def _initialize(params: dict[str, Any]) -> dict[str, Any]:
    asked = params.get("protocolVersion")
    if not isinstance(asked, str):
        raise RpcError(INVALID_PARAMS, "protocolVersion is missing")
    return {
        "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
        "capabilities": {"tools": {"listChanged": False}},
        "serverInfo": {"name": "tidegate", "version": __version__},
    }


def listed(tool: Tool) -> dict[str, Any]:
    """Return a tool as a client sees it."""
    return {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}


def _call(params: dict[str, Any], tools: Mapping[str, Tool], run: Run) -> dict[str, Any]:
    name, given = params.get("name"), params.get("arguments", {})
    tool = tools.get(name) if isinstance(name, str) else None
    if tool is None:
        raise RpcError(INVALID_PARAMS, "there is no such tool")
    if not isinstance(given, dict):
        raise RpcError(INVALID_PARAMS, "arguments are an object")
    data = json.dumps(given, ensure_ascii=False, separators=(",", ":")).encode()
    return _told(check_and_run(tool, given, data, run))


def _told(called: Called) -> dict[str, Any]:
    if called.ok:
        text = called.output.decode("utf-8", "replace")
    else:
        text = f"{called.message}\n{called.said}" if called.said else called.message
    return {"content": [{"type": "text", "text": text}], "isError": not called.ok}
