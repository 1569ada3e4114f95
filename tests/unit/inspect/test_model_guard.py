"""A call that lets the model service reach out for the task is refused; what agents really send passes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidegate.inspect.model_guard import find_call, why_head_refused, why_refused
from tidegate.inspect.model_services import (
    ANTHROPIC,
    CODE_ASSIST,
    CODEX,
    FACTORY,
    GENERATE,
    GOOGLE,
    LOOK,
    MESSAGES,
    NONE,
    OPENAI,
    PASS,
    RESPONSES,
    Call,
    Service,
    Shape,
)

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

PASSES: list[tuple[Shape, Any]] = [
    (MESSAGES, anthropic()),
    (MESSAGES, anthropic(tools=[{"name": "Bash", "input_schema": SCHEMA}, {"type": "custom", "name": "x"}])),
    (MESSAGES, anthropic(tools=[{"type": "bash_20250124", "name": "bash"}], mcp_servers=[], container=None)),
    (MESSAGES, content({"type": "text", "text": "see https://example.com"}, {"type": "image", "source": IMAGE})),
    (MESSAGES, content({"type": "tool_use", "id": "1", "name": "Fetch", "input": {"source": PAGE, "type": "url"}})),
    (MESSAGES, content({"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "url"}]})),
    (RESPONSES, openai(tools=[{"type": "function", "name": "f", "parameters": SCHEMA}])),
    (RESPONSES, openai({"type": "input_image", "image_url": "data:image/png;base64,AAAA"})),
    (MESSAGES, content({"type": "text", "text": '{"tools":[{"type":"web_search_20250305"}],"mcp_servers":[1]}'})),
    (MESSAGES, anthropic(tools=[{"type": "custom", "name": "web_search", "input_schema": {}}, {"name": "WebFetch"}])),
    (MESSAGES, anthropic(tools=[{"type": "tool_search_tool_regex_20251119", "name": "t"}])),
    (MESSAGES, content({"type": "tool_addition", "tool": {"type": "tool", "name": "Bash"}})),
    (RESPONSES, openai(tools=[{"type": "web_search", "external_web_access": False}])),
    (RESPONSES, openai(tools=[{"type": "shell", "environment": {"type": "local"}}, {"type": "image_generation"}])),
    (RESPONSES, openai(tools=[{"type": "namespace", "name": "mcp__x", "tools": [{"type": "function", "name": "f"}]}])),
    (RESPONSES, {"input": [{"type": "additional_tools", "tools": [{"type": "custom", "name": "x"}]}]}),
    (RESPONSES, openai({"type": "input_text", "text": "web_search mcp"}, background=False, tool_choice="auto")),
    (RESPONSES, openai(tools=[{"type": "local_shell"}, {"type": "custom", "name": "apply_patch"}], prompt=None)),
    (RESPONSES, {"model": "gpt-5", "input": "text"}),
    (RESPONSES, {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]}),
    (RESPONSES, openai({"type": "function_call", "name": "f", "arguments": '{"file_url":"x"}'})),
    (GENERATE, google(tools=[{"functionDeclarations": [{"name": "f", "parametersJsonSchema": SCHEMA}]}])),
    (GENERATE, google({"inlineData": {"mimeType": "a/b", "data": "AA"}}, tools=[{"function_declarations": []}])),
    (GENERATE, google({"functionCall": {"name": "f", "args": {"fileData": {"fileUri": "x"}, "urlContext": 1}}})),
    (GENERATE, google({"functionResponse": {"name": "f", "response": {"fileData": {"fileUri": "x"}}}})),
    (GENERATE, {"model": "m", "project": "p", "request": google(tools=[{"functionDeclarations": [{"name": "f"}]}])}),
]  # fmt: skip

REFUSED: list[tuple[Shape, Any, str]] = [
    (MESSAGES, anthropic(tools=[{"type": "web_search_20250305", "name": "web_search"}]), "web_search"),
    (MESSAGES, anthropic(tools=[{"type": "web_fetch_20250910", "name": "web_fetch"}]), "web_fetch"),
    (MESSAGES, anthropic(tools=[{"type": "code_execution_20250825", "name": "c"}]), "code_execution"),
    (MESSAGES, anthropic(tools=[{"type": "mcp_toolset", "mcp_server_name": "x"}]), "mcp_toolset"),
    (MESSAGES, anthropic(tools=[{"name": "ok"}, {"Type": "web_search_20250305"}]), "web_search"),
    (MESSAGES, anthropic(tools=[{"type": "something_new"}]), "something_new"),
    (MESSAGES, anthropic(tools={"type": "custom"}), "no list"),
    (MESSAGES, anthropic(tools=["web_search"]), "no list"),
    (MESSAGES, anthropic(tools=[{"type": ["custom"]}]), "carries out"),
    (MESSAGES, anthropic(mcp_servers=[{"type": "url", "url": "https://x"}]), "mcp_servers"),
    (MESSAGES, anthropic(Mcp_Servers=[{}]), "mcp_servers"),
    (MESSAGES, anthropic(container={"skills": []}), "container"),
    (MESSAGES, content({"type": "image", "source": PAGE}), "'url'"),
    (MESSAGES, content({"type": "document", "source": {"type": "file", "file_id": "f"}}), "'file'"),
    (MESSAGES, content({"type": "tool_result", "content": [{"type": "image", "source": PAGE}]}), "'url'"),
    (MESSAGES, content({"type": "document", "source": {"type": "content", "content": [{"source": PAGE}]}}), "'url'"),
    (MESSAGES, anthropic(system=[{"type": "image", "source": PAGE}]), "'url'"),
    (MESSAGES, content({"type": "tool_addition", "tool": {"type": "mcp_toolset_reference"}}), "mcp_toolset_reference"),
    (MESSAGES, content({"type": "text", "text": "x", "tools": [{"type": "web_fetch_20260318"}]}), "web_fetch"),
    (MESSAGES, anthropic(tool_choice={"type": "web_search_20250305"}), "web_search"),
    (MESSAGES, {"type": "tool_use", "input": {}, "mcp_servers": [{}]}, "mcp_servers"),
    (MESSAGES, content({"type": "image", "source": {"type": "base64", "file_id": "f"}}), "file_id"),
    (RESPONSES, openai(tools=[{"type": "web_search", "external_web_access": True}]), "web_search"),
    (RESPONSES, openai(tools=[{"type": "web_search", "external_web_access": 0}]), "web_search"),
    (RESPONSES, openai(tools=[{"type": "web_search", "external_web_access": False, "new": 1}]), "web_search"),
    (RESPONSES, openai(tools=[{"type": "shell"}]), "shell"),
    (RESPONSES, openai(tools=[{"type": "shell", "environment": {"type": "container_auto"}}]), "shell"),
    (RESPONSES, openai(tools=[{"type": "namespace", "tools": [{"type": "web_search"}]}]), "web_search"),
    (RESPONSES, {"model": "gpt-6", "input": [{"type": "additional_tools", "tools": [{"type": "mcp"}]}]}, "mcp"),
    (RESPONSES, {"model": "gpt-6", "input": [{"type": "tool_search_output", "tools": [{"type": "mcp"}]}]}, "mcp"),
    (RESPONSES, {"model": "gpt-6", "input": [{"type": "mcp_approval_response", "approve": True}]}, "mcp_approval"),
    (RESPONSES, openai(background=True), "background"),
    (RESPONSES, openai() | {"model": "o3-deep-research"}, "searches by itself"),
    (RESPONSES, openai(webhook_url="https://x"), "webhook_url"),
    (MESSAGES, anthropic(tools=[{"type": "bash_code_execution_20250825"}]), "bash_code_execution"),
    (MESSAGES, anthropic(tools=[{"type": "text_editor_code_execution_20250825"}]), "text_editor_code"),
    (MESSAGES, anthropic(tools=[{"type": "memory_store_20260101"}]), "memory_store"),
    (GENERATE, {"request": google(tools=[{"googleSearch": {}}])}, "googleSearch"),
    (GENERATE, google(webhookConfig={"uri": "https://x"}), "webhook_config"),
    (RESPONSES, openai(tools=[{"type": "web_search"}]), "web_search"),
    (RESPONSES, openai(tools=[{"type": "mcp", "server_url": "https://x"}]), "mcp"),
    (RESPONSES, openai(tools=[{"type": "code_interpreter", "container": {"type": "auto"}}]), "code_interpreter"),
    (RESPONSES, openai(tools=[{"type": "file_search", "vector_store_ids": ["x"]}]), "file_search"),
    (RESPONSES, openai(tools=[{"name": "no type"}]), "carries out"),
    (RESPONSES, openai(prompt={"id": "pmpt_1"}), "prompt"),
    (RESPONSES, openai(conversation="conv_1"), "conversation"),
    (RESPONSES, openai(web_search_options={"x": 1}), "web_search_options"),
    (RESPONSES, openai({"type": "input_file", "file_url": "https://x"}), "file_url"),
    (RESPONSES, openai({"type": "input_image", "file_id": "file-1"}), "file_id"),
    (RESPONSES, openai({"type": "input_image", "image_url": "https://x"}), "image_url"),
    (RESPONSES, openai({"type": "image_url", "image_url": {"url": "http://x"}}), "image_url"),
    (RESPONSES, openai({"type": "image_url", "imageUrl": {"url": " data:"}}), "image_url"),
    (RESPONSES, openai() | {"model": "gpt-4o-search-preview"}, "searches by itself"),
    (GENERATE, google(tools=[{"google_search": {}}]), "google_search"),
    (GENERATE, google(tools=[{"functionDeclarations": [], "urlContext": {}}]), "urlContext"),
    (GENERATE, google(tools=[{"codeExecution": {}}]), "codeExecution"),
    (GENERATE, google({"fileData": {"fileUri": "https://x"}}), "fileData"),
    (GENERATE, google({"file_data": {"file_uri": "https://x"}}), "fileData"),
    (GENERATE, google({"functionResponse": {"name": "f", "parts": [{"fileData": {"fileUri": "x"}}]}}), "fileData"),
    (GENERATE, google(cachedContent="cachedContents/1"), "cachedContent"),
    (GENERATE, {"model": "m", "request": google(cachedContent="cachedContents/1")}, "cachedContent"),
    (GENERATE, {"model": "m", "request": google(tools=[{"googleSearch": {}}])}, "googleSearch"),
    (GENERATE, {"model": "m", "request": google({"fileData": {"fileUri": "https://x"}})}, "fileData"),
    (GENERATE, [google()], "no object"),
]


@pytest.mark.parametrize(("shape", "body"), PASSES)
def test_what_agents_send_passes(shape: Shape, body: Any) -> None:
    """INS-8: texts, inline images, tools of the agent's own, whatever their arguments and schemas are called."""
    assert why_refused(shape, json.dumps(body).encode()) == ""


@pytest.mark.parametrize(("shape", "body", "says"), REFUSED)
def test_what_lets_the_service_reach_out_is_refused(shape: Shape, body: Any, says: str) -> None:
    """INS-8: server-side tools, MCP servers, pages, files, stored prompts; in either spelling, however deep."""
    assert says in why_refused(shape, json.dumps(body).encode())


def test_what_two_readers_could_read_differently_is_refused() -> None:
    """INS-8: the first reader sees no tools, the second sees one."""
    assert "twice" in why_refused(MESSAGES, b'{"tools":[],"tools":[{"type":"web_search_20250305"}]}')
    assert why_refused(MESSAGES, b'{"tools":[]}') == ""


@pytest.mark.parametrize(
    ("service", "method", "path"),
    [
        (ANTHROPIC, "POST", "/v1/messages"),
        (ANTHROPIC, "GET", "/v1/models/claude-sonnet-4-5"),
        (ANTHROPIC, "HEAD", "/v1/models"),
        (OPENAI, "POST", "/v1/responses"),
        (ANTHROPIC, "POST", "/v1/messages?beta=true"),
        (ANTHROPIC, "HEAD", "/"),
        (OPENAI, "POST", "/v1/chat/completions"),
        (CODEX, "POST", "/backend-api/codex/responses"),
        (CODEX, "GET", "/backend-api/codex/models?client_version=0.171.0"),
        (GOOGLE, "POST", "/v1beta/models/gemini-2.5-pro:streamGenerateContent"),
        (GOOGLE, "POST", "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse&key=x"),
        (CODE_ASSIST, "POST", "/v1internal:streamGenerateContent?alt=sse"),
        (CODE_ASSIST, "POST", "/v1internal:loadCodeAssist"),
        (CODE_ASSIST, "GET", "/v1internal/operations/x.1"),
        (FACTORY, "POST", "/api/llm/a/v1/messages"),
        (FACTORY, "POST", "/api/sessions/3f-1/message/create"),
        (FACTORY, "GET", "/api/billing/limits"),
    ],
)
def test_what_agents_call_is_known(service: Service, method: str, path: str) -> None:
    """INS-8: the paths of each service."""
    assert find_call(service, method, path.encode()) is not None


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
        (ANTHROPIC, "POST", "/v1/messages/../files"),
        (ANTHROPIC, "POST", "/v1/messages/%2e%2e/files"),
        (ANTHROPIC, "POST", "/v1/messages;x/y"),
        (ANTHROPIC, "POST", "/v1/messages%2Fbatches"),
        (ANTHROPIC, "POST", "/v1/messages?beta=true&x=1"),
        (ANTHROPIC, "POST", "/v1/messages?beta=true;x"),
        (ANTHROPIC, "GET", "/v1/models/"),
        (ANTHROPIC, "POST", "/v1/code/sessions"),
        (ANTHROPIC, "POST", "/v1/sessions"),
        (ANTHROPIC, "POST", "/v1/skills"),
        (ANTHROPIC, "POST", "/api/oauth/file_upload"),
        (ANTHROPIC, "GET", "/api/web/domain_info"),
        (OPENAI, "POST", "/v1/batches"),
        (OPENAI, "POST", "/v1/vector_stores"),
        (OPENAI, "GET", "/v1/realtime"),
        (CODEX, "POST", "/backend-api/codex/alpha/search"),
        (CODEX, "POST", "/backend-api/wham/tasks"),
        (CODEX, "POST", "/backend-api/conversation"),
        (FACTORY, "POST", "/api/v0/computers"),
        (FACTORY, "POST", "/api/tools/web"),
        (FACTORY, "POST", "/api/integrations/org/check"),
        (FACTORY, "POST", "/api/llm/x/v1/messages"),
        (GOOGLE, "POST", "/v1beta/models/x:generateContent?$httpMethod=DELETE"),
        (GOOGLE, "POST", "/v1beta/models/x:batchGenerateContent:generateContent"),
        (OPENAI, "POST", "/v1/files"),
        (OPENAI, "GET", "/v1/responses/resp_1"),
        (GOOGLE, "POST", "/v1beta/models/x:batchGenerateContent"),
        (GOOGLE, "POST", "/v1beta/models/:generateContent"),
        (CODE_ASSIST, "POST", "/v1internal:setCodeAssistGlobalUserSetting"),
        (CODE_ASSIST, "POST", "/v1internal:generateContent?$httpMethod=GET"),
        (CODE_ASSIST, "POST", "/v1internal:generateContent:loadCodeAssist"),
        (GOOGLE, "POST", "/upload/v1beta/files"),
        (GOOGLE, "POST", "/v1beta/cachedContents"),
    ],
)
def test_anything_else_is_not(service: Service, method: str, path: str) -> None:
    """INS-8: uploads, batches, what was stored, and paths that a server may read as another."""
    assert find_call(service, method, path.encode()) is None


BODY, BARE, TOLD = Call("POST", "/", LOOK, MESSAGES), Call("GET", "/", NONE), Call("POST", "/", PASS)


@pytest.mark.parametrize(
    ("call", "fields", "says"),
    [
        (BODY, [JSON], ""),
        (BODY, [(b"content-type", b'application/json; charset="UTF-8"')], ""),
        (BODY, [JSON, (b"Content-Encoding", b"identity")], ""),
        (BODY, [JSON, (b"Content-Encoding", b"GZIP")], ""),
        (BODY, [JSON, (b"Content-Encoding", b"zstd")], ""),
        (BARE, [], ""),
        (TOLD, [(b"Content-Type", b"text/plain")], ""),
        (BODY, [], "not application/json"),
        (BODY, [(b"Content-Type", b"text/plain")], "not application/json"),
        (BODY, [(b"Content-Type", b"multipart/form-data; boundary=x")], "not application/json"),
        (BODY, [(b"Content-Type", b"application/json, text/plain")], "not application/json"),
        (BODY, [(b"Content-Type", b"application/jsonl")], "not application/json"),
        (BODY, [(b"Content-Type", b"application/json; charset=utf-7")], "UTF-8"),
        (BODY, [(b"Content-Type", b"application/json; charset=utf-16")], "UTF-8"),
        (BODY, [JSON, JSON], "twice"),
        (BODY, [JSON, (b"Content-Encoding", b"compress")], "coding"),
        (BODY, [JSON, (b"Content-Encoding", b"gzip, gzip")], "coding"),
        (BODY, [JSON, (b"Content-Encoding", b"gzip"), (b"content-encoding", b"gzip")], "twice"),
        (BODY, [JSON, (b"X_Accel", b"x"), (b"content-type-x", b"x")], ""),
        (BODY, [JSON, (b"Content_Type", b"text/plain")], "another header"),
        (BODY, [JSON, (b"content_encoding", b"gzip")], "another header"),
        (BARE, [(b"X-HTTP-Method-Override", b"POST")], "another request"),
        (BODY, [JSON, (b"x_http_method", b"PUT")], "another request"),
        (BODY, [JSON, (b"X-Original-URL", b"/v1/files")], "another request"),
        (TOLD, [(b"X-Rewrite-URL", b"/v1/files")], "another request"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(call: Call, fields: list[tuple[bytes, bytes]], says: str) -> None:
    """INS-8: another kind, another alphabet, another coding, or a method that is not what it seems."""
    refused = why_head_refused(call, fields, empty=call is BARE)
    assert says in refused
    assert bool(refused) is bool(says)


def test_a_body_where_none_belongs_is_refused() -> None:
    """INS-8: what is only got brings nothing along."""
    assert "has a body" in why_head_refused(BARE, [], empty=False)
