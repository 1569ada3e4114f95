"""tidegate.tools.mcp: messages of JSON-RPC and the methods of the protocol, by its specification of 2025-06-18."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.tools.calls import Called
from tidegate.tools.declaration import Tool
from tidegate.tools.mcp import VERSIONS, answer, version_fault
from tidegate.tools.schema import normal

SCHEMA = normal({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
TOOLS = {"t": Tool("t", ("/bin/true",), "About it.", SCHEMA, "")}


def run(_tool: Tool, data: bytes) -> Called:
    """A tool that says what it was given; with 0 it fails."""
    return Called("failed", message="it failed", said="why") if b"0" in data else Called("ok", data)


def ask(method: str, params: Any = None, **more: Any) -> dict[str, Any]:
    """The answer to a request."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, **({} if params is None else {"params": params}), **more}
    status, said = answer(message, TOOLS, run)
    assert status == 200
    assert said is not None
    assert (said["jsonrpc"], said["id"]) == ("2.0", message["id"])
    return said


@pytest.mark.parametrize(
    ("asked", "given"),
    [*((one, one) for one in VERSIONS), ("2024-11-05", VERSIONS[0]), ("2099-01-01", VERSIONS[0]), ("", VERSIONS[0])],
)
def test_a_client_gets_its_version_or_the_newest(asked: str, given: str) -> None:
    """SRV-6: version negotiation (basic/lifecycle); what is offered are tools and nothing else."""
    result = ask("initialize", {"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "x"}})["result"]
    assert result["protocolVersion"] == given
    assert result["capabilities"] == {"tools": {"listChanged": False}}
    assert result["serverInfo"]["name"] == "tidegate"


def test_tools_are_listed_and_called() -> None:
    """SRV-6: tools/list has the schema that is checked; tools/call gives what the program printed as text."""
    assert ask("tools/list")["result"]["tools"] == [{"name": "t", "description": "About it.", "inputSchema": SCHEMA}]
    result = ask("tools/call", {"name": "t", "arguments": {"n": 1}})["result"]
    assert result == {"content": [{"type": "text", "text": '{"n":1}'}], "isError": False}
    assert ask("ping")["result"] == {}


@pytest.mark.parametrize(
    ("given", "text"), [({"n": 0}, "it failed\nwhy"), ({"n": "x"}, "input.n is not of type"), ({}, "has no 'n'")]
)
def test_what_went_wrong_in_a_tool_is_a_result(given: Any, text: str) -> None:
    """SRV-6: a failure and an input that does not fit are told as isError, so that a model can do better."""
    result = ask("tools/call", {"name": "t", "arguments": given})["result"]
    assert result["isError"]
    assert text in result["content"][0]["text"]


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("tools/call", {"name": "other"}, -32602),
        ("tools/call", {"name": ["t"]}, -32602),
        ("tools/call", {}, -32602),
        ("tools/call", {"name": "t", "arguments": [1]}, -32602),
        ("tools/call", [], -32602),
        ("tools/list", {"cursor": "x"}, -32602),
        ("initialize", {}, -32602),
        ("resources/list", {}, -32601),
        ("tools/Call", {}, -32601),
    ],
)
def test_what_cannot_be_done_is_an_error(method: str, params: Any, code: int) -> None:
    """SRV-6: an unknown tool, parameters of another form and unknown methods have their codes (JSON-RPC 5.1)."""
    assert ask(method, params)["error"]["code"] == code


@pytest.mark.parametrize(
    "message",
    [
        [],
        [{"jsonrpc": "2.0", "id": 1, "method": "ping"}],
        {},
        "ping",
        None,
        {"jsonrpc": "1.0", "id": 1, "method": "ping"},
        {"id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": 1, "result": 1, "error": {}},
        {"jsonrpc": "2.0", "id": None, "method": "ping"},
        {"jsonrpc": "2.0", "id": True, "method": "ping"},
        {"jsonrpc": "2.0", "id": {}, "method": "ping"},
        {"jsonrpc": "2.0", "id": "x" * 300, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "method": 5},
    ],
)
def test_what_is_no_message_is_400(message: Any) -> None:
    """SRV-6: batches (gone with 2025-06-18) and what is no message of JSON-RPC 2.0 are refused, with an id of null."""
    status, said = answer(message, TOOLS, run)
    assert status == 400
    assert said is not None
    assert (said["error"]["code"], said["id"]) == (-32600, None)


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
        {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "t", "arguments": {"n": 1}}},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": ""}},
    ],
)
def test_what_needs_no_answer_gets_202(message: Any) -> None:
    """SRV-6: notifications and answers of a client are taken; a call without an id runs nothing."""

    def never(_tool: Tool, _data: bytes) -> Called:
        raise AssertionError

    assert answer(message, TOOLS, never) == (202, None)


def test_the_header_names_a_version_that_is_spoken() -> None:
    """SRV-6: an MCP-Protocol-Version that is not spoken is refused; none is taken (basic/transports)."""
    assert version_fault(None) == version_fault(VERSIONS[1]) == ""
    assert "2025-06-18" in version_fault("2024-11-05")


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
METHODS = ("initialize", "ping", "tools/list", "tools/call", "notifications/initialized")
LIKELY = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0") | JSON, "method": st.sampled_from(METHODS) | JSON},
    optional={
        "id": st.integers() | JSON,
        "params": JSON | st.fixed_dictionaries({}, optional={"name": st.just("t") | JSON, "arguments": JSON}),
    },
)


@given(JSON | LIKELY)
def test_whatever_comes_has_an_answer(message: Any) -> None:
    """SRV-6: for every JSON value a status and a message of JSON-RPC, or 202 and none; nothing raises."""
    status, said = answer(message, TOOLS, run)
    assert (status == 202) == (said is None)
    if said is not None:
        assert status in (200, 400)
        assert ("result" in json.loads(json.dumps(said))) != ("error" in said)
