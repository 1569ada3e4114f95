"""A call that lets the model service reach out for the task is refused; what agents really send passes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidegate.inspect.model_guard import find_call, service_at, why_head_refused, why_refused
from tidegate.inspect.model_services import ANTHROPIC, GOOGLE, OPENAI, Call, Service

JSON = (b"Content-Type", b"application/json")
USER = {"role": "user", "content": "hello"}


def anthropic(**more: Any) -> dict[str, Any]:
    """A call as Claude Code makes it."""
    return {"model": "claude", "max_tokens": 9, "stream": True, "messages": [USER], **more}


def content(*parts: Any) -> dict[str, Any]:
    """The same with these parts in its message."""
    return anthropic(messages=[{"role": "user", "content": list(parts)}])


def openai(*parts: Any, **more: Any) -> dict[str, Any]:
    """A call as Codex makes it."""
    return {"model": "gpt-5", "input": [{"role": "user", "content": list(parts)}], "store": False, **more}


def google(*parts: Any, **more: Any) -> dict[str, Any]:
    """A call as Gemini CLI makes it."""
    return {"contents": [{"role": "user", "parts": list(parts)}], **more}


IMAGE = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
PAGE = {"type": "url", "url": "https://example.com/?secret"}
SCHEMA = {"type": "object", "properties": {"type": {"type": "string"}, "file_id": {"type": "string"}, "url": {}}}

PASS: list[tuple[Service, Any]] = [
    (ANTHROPIC, anthropic()),
    (ANTHROPIC, anthropic(tools=[{"name": "Bash", "input_schema": SCHEMA}, {"type": "custom", "name": "x"}])),
    (ANTHROPIC, anthropic(tools=[{"type": "bash_20250124", "name": "bash"}], mcp_servers=[], container=None)),
    (ANTHROPIC, content({"type": "text", "text": "see https://example.com"}, {"type": "image", "source": IMAGE})),
    (ANTHROPIC, content({"type": "tool_use", "id": "1", "name": "Fetch", "input": {"source": PAGE, "type": "url"}})),
    (ANTHROPIC, content({"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "url"}]})),
    (OPENAI, openai(tools=[{"type": "function", "name": "f", "parameters": SCHEMA}])),
    (OPENAI, openai({"type": "input_image", "image_url": "data:image/png;base64,AAAA"})),
    (OPENAI, openai(tools=[{"type": "local_shell"}, {"type": "custom", "name": "apply_patch"}], prompt=None)),
    (OPENAI, {"model": "gpt-5", "input": "text"}),
    (OPENAI, {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]}),
    (OPENAI, openai({"type": "function_call", "name": "f", "arguments": '{"file_url":"x"}'})),
    (GOOGLE, google({"text": "x"}, tools=[{"functionDeclarations": [{"name": "f", "parametersJsonSchema": SCHEMA}]}])),
    (GOOGLE, google({"inlineData": {"mimeType": "image/png", "data": "AAAA"}}, tools=[{"function_declarations": []}])),
    (GOOGLE, google({"functionCall": {"name": "f", "args": {"fileData": {"fileUri": "x"}, "urlContext": 1}}})),
    (GOOGLE, google({"functionResponse": {"name": "f", "response": {"fileData": {"fileUri": "x"}}}})),
]  # fmt: skip

REFUSED: list[tuple[Service, Any, str]] = [
    (ANTHROPIC, anthropic(tools=[{"type": "web_search_20250305", "name": "web_search"}]), "web_search"),
    (ANTHROPIC, anthropic(tools=[{"type": "web_fetch_20250910", "name": "web_fetch"}]), "web_fetch"),
    (ANTHROPIC, anthropic(tools=[{"type": "code_execution_20250825", "name": "c"}]), "code_execution"),
    (ANTHROPIC, anthropic(tools=[{"type": "mcp_toolset", "mcp_server_name": "x"}]), "mcp_toolset"),
    (ANTHROPIC, anthropic(tools=[{"name": "ok"}, {"Type": "web_search_20250305"}]), "web_search"),
    (ANTHROPIC, anthropic(tools=[{"type": "something_new"}]), "something_new"),
    (ANTHROPIC, anthropic(tools={"type": "custom"}), "no list"),
    (ANTHROPIC, anthropic(tools=["web_search"]), "no list"),
    (ANTHROPIC, anthropic(tools=[{"type": ["custom"]}]), "carries out"),
    (ANTHROPIC, anthropic(mcp_servers=[{"type": "url", "url": "https://x"}]), "mcp_servers"),
    (ANTHROPIC, anthropic(Mcp_Servers=[{}]), "mcp_servers"),
    (ANTHROPIC, anthropic(container={"skills": []}), "container"),
    (ANTHROPIC, content({"type": "image", "source": PAGE}), "'url'"),
    (ANTHROPIC, content({"type": "document", "source": {"type": "file", "file_id": "f"}}), "'file'"),
    (ANTHROPIC, content({"type": "tool_result", "content": [{"type": "image", "source": PAGE}]}), "'url'"),
    (ANTHROPIC, content({"type": "document", "source": {"type": "content", "content": [{"source": PAGE}]}}), "'url'"),
    (ANTHROPIC, anthropic(system=[{"type": "image", "source": PAGE}]), "'url'"),
    (OPENAI, openai(tools=[{"type": "web_search"}]), "web_search"),
    (OPENAI, openai(tools=[{"type": "mcp", "server_url": "https://x"}]), "mcp"),
    (OPENAI, openai(tools=[{"type": "code_interpreter", "container": {"type": "auto"}}]), "code_interpreter"),
    (OPENAI, openai(tools=[{"type": "file_search", "vector_store_ids": ["x"]}]), "file_search"),
    (OPENAI, openai(tools=[{"name": "no type"}]), "carries out"),
    (OPENAI, openai(prompt={"id": "pmpt_1"}), "prompt"),
    (OPENAI, openai(conversation="conv_1"), "conversation"),
    (OPENAI, openai(web_search_options={"x": 1}), "web_search_options"),
    (OPENAI, openai({"type": "input_file", "file_url": "https://x"}), "file_url"),
    (OPENAI, openai({"type": "input_image", "file_id": "file-1"}), "file_id"),
    (OPENAI, openai({"type": "input_image", "image_url": "https://x"}), "image_url"),
    (OPENAI, openai({"type": "image_url", "image_url": {"url": "http://x"}}), "image_url"),
    (OPENAI, openai({"type": "image_url", "imageUrl": {"url": " data:"}}), "image_url"),
    (OPENAI, openai() | {"model": "gpt-4o-search-preview"}, "searches by itself"),
    (GOOGLE, google(tools=[{"google_search": {}}]), "google_search"),
    (GOOGLE, google(tools=[{"functionDeclarations": [], "urlContext": {}}]), "urlContext"),
    (GOOGLE, google(tools=[{"codeExecution": {}}]), "codeExecution"),
    (GOOGLE, google({"fileData": {"fileUri": "https://x"}}), "fileData"),
    (GOOGLE, google({"file_data": {"file_uri": "https://x"}}), "fileData"),
    (GOOGLE, google({"functionResponse": {"name": "f", "parts": [{"fileData": {"fileUri": "x"}}]}}), "fileData"),
    (GOOGLE, google(cachedContent="cachedContents/1"), "cachedContent"),
    (GOOGLE, [google()], "no object"),
]


@pytest.mark.parametrize(("service", "body"), PASS)
def test_what_agents_send_passes(service: Service, body: Any) -> None:
    """INS-8: texts, inline images, tools of the agent's own, whatever their arguments and schemas are called."""
    assert why_refused(service, json.dumps(body).encode()) == ""


@pytest.mark.parametrize(("service", "body", "says"), REFUSED)
def test_what_lets_the_service_reach_out_is_refused(service: Service, body: Any, says: str) -> None:
    """INS-8: server-side tools, MCP servers, pages, files, stored prompts; in either spelling, however deep."""
    assert says in why_refused(service, json.dumps(body).encode())


def test_what_two_readers_could_read_differently_is_refused() -> None:
    """INS-8: the first reader sees no tools, the second sees one."""
    assert "twice" in why_refused(ANTHROPIC, b'{"tools":[],"tools":[{"type":"web_search_20250305"}]}')
    assert why_refused(ANTHROPIC, b'{"tools":[]}') == ""


@pytest.mark.parametrize(
    ("service", "method", "path"),
    [
        (ANTHROPIC, "POST", "/v1/messages"),
        (ANTHROPIC, "GET", "/v1/models/claude-sonnet-4-5"),
        (ANTHROPIC, "HEAD", "/v1/models"),
        (OPENAI, "POST", "/v1/responses"),
        (GOOGLE, "POST", "/v1beta/models/gemini-2.5-pro:streamGenerateContent"),
    ],
)
def test_what_agents_call_is_known(service: Service, method: str, path: str) -> None:
    """INS-8: the paths of each service."""
    assert find_call(service, method, path) is not None


@pytest.mark.parametrize(
    ("service", "method", "path"),
    [
        (ANTHROPIC, "POST", "/v1/files"),
        (ANTHROPIC, "POST", "/v1/messages/batches"),
        (ANTHROPIC, "GET", "/v1/messages"),
        (ANTHROPIC, "POST", "/v1/messages/"),
        (ANTHROPIC, "POST", "//v1/messages"),
        (ANTHROPIC, "POST", "/V1/messages"),
        (ANTHROPIC, "GET", "/v1/models/.."),
        (ANTHROPIC, "GET", "/v1/models/a%2f..%2ffiles"),
        (ANTHROPIC, "DELETE", "/v1/models/x"),
        (OPENAI, "POST", "/v1/files"),
        (OPENAI, "GET", "/v1/responses/resp_1"),
        (GOOGLE, "POST", "/v1beta/models/x:batchGenerateContent"),
        (GOOGLE, "POST", "/v1beta/models/:generateContent"),
        (GOOGLE, "POST", "/upload/v1beta/files"),
        (GOOGLE, "POST", "/v1beta/cachedContents"),
    ],
)
def test_anything_else_is_not(service: Service, method: str, path: str) -> None:
    """INS-8: uploads, batches, what was stored, and paths that a server may read as another."""
    assert find_call(service, method, path) is None


BODY, NONE = Call("POST", "/", body=True), Call("GET", "/")


@pytest.mark.parametrize(
    ("call", "fields", "says"),
    [
        (BODY, [JSON], ""),
        (BODY, [(b"content-type", b'application/json; charset="UTF-8"')], ""),
        (BODY, [JSON, (b"Content-Encoding", b"identity")], ""),
        (NONE, [], ""),
        (BODY, [], "not application/json"),
        (BODY, [(b"Content-Type", b"text/plain")], "not application/json"),
        (BODY, [(b"Content-Type", b"application/json; charset=utf-7")], "UTF-8"),
        (BODY, [JSON, JSON], "twice"),
        (BODY, [JSON, (b"Content-Encoding", b"gzip")], "compressed"),
        (NONE, [(b"X-HTTP-Method-Override", b"POST")], "another request"),
        (BODY, [JSON, (b"x_http_method", b"PUT")], "another request"),
        (BODY, [JSON, (b"X-Original-URL", b"/v1/files")], "another request"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(call: Call, fields: list[tuple[bytes, bytes]], says: str) -> None:
    """INS-8: another kind, another alphabet, compressed, or a method that is not what it seems."""
    refused = why_head_refused(call, fields)
    assert says in refused
    assert bool(refused) is bool(says)


def test_services_are_found_by_their_hosts() -> None:
    """INS-8: and no other host is one."""
    assert service_at("api.anthropic.com") is ANTHROPIC
    assert service_at("api.anthropic.com.example") is None
