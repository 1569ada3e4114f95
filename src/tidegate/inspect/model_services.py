"""The model services that tidegate knows: what an agent calls there, and by what a call asks them to act (INS-8).

Rules of the file:

* Data only. `calls` are all that passes; what is not in it is refused, uploads, batches and stored prompts too, because
  they bring in what a later call only names.
* Tools by allow-list: what the agent's own machine runs. A kind of tool that is not known is refused.
* Sources say where each list is documented. Field names are compared as strict_json.plain does.
"""

from __future__ import annotations

from tidegate.model.value import Value


class Call(Value):
    """What an agent calls. In `path`, `*` is one segment or part of it. `body`: whether it is JSON to be looked at."""

    method: str
    path: str
    body: bool = False


class Service(Value):
    """One service.

    `tools` are values of `type` that the agent itself carries out (a `*` at the end: any that begin so), where `""` is
    a tool without one; `tool_keys` the same for services whose tools are told by their one key. `forbidden` are fields
    of the body that have to be missing, null or empty; `anywhere` such fields of any object in it; `links` fields that
    may hold `data:` and nothing else; `types` values of `type` that no object may have; `models` names that search by
    themselves.
    """

    name: str
    hosts: tuple[str, ...]
    calls: tuple[Call, ...]
    tools: tuple[str, ...] = ()
    tool_keys: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    anywhere: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


ANTHROPIC = Service(
    "anthropic",
    ("api.anthropic.com",),
    (
        Call("POST", "/v1/messages", body=True),
        Call("POST", "/v1/messages/count_tokens", body=True),
        Call("GET", "/v1/models"),
        Call("GET", "/v1/models/*"),
    ),
    tools=("", "custom", "bash_*", "text_editor_*", "computer_*", "memory_*"),
    forbidden=("mcp_servers", "container"),
    types=("url", "file", "container_upload"),  # of a source: fetched by the service
    sources=(
        "https://docs.claude.com/en/api/messages",
        "https://docs.claude.com/en/docs/agents-and-tools/tool-use/overview",
        "https://docs.claude.com/en/docs/agents-and-tools/mcp-connector",
    ),
)

OPENAI = Service(
    "openai",
    ("api.openai.com",),
    (
        Call("POST", "/v1/responses", body=True),
        Call("POST", "/v1/responses/compact", body=True),
        Call("POST", "/v1/chat/completions", body=True),
        Call("POST", "/v1/embeddings", body=True),
        Call("GET", "/v1/models"),
        Call("GET", "/v1/models/*"),
    ),
    tools=("function", "custom", "local_shell", "apply_patch", "computer_use_preview"),
    forbidden=("web_search_options", "prompt", "conversation"),
    anywhere=("file_url", "file_id", "server_url", "connector_id", "vector_store_ids"),
    links=("image_url",),
    models=("search",),
    sources=(
        "https://platform.openai.com/docs/api-reference/responses/create",
        "https://platform.openai.com/docs/guides/tools",
        "https://platform.openai.com/docs/api-reference/chat/create",
    ),
)

GOOGLE = Service(
    "google",
    ("generativelanguage.googleapis.com",),
    (
        Call("POST", "/v1beta/models/*:generateContent", body=True),
        Call("POST", "/v1beta/models/*:streamGenerateContent", body=True),
        Call("POST", "/v1beta/models/*:countTokens", body=True),
        Call("POST", "/v1beta/models/*:embedContent", body=True),
        Call("GET", "/v1beta/models"),
        Call("GET", "/v1beta/models/*"),
    ),
    tool_keys=("functionDeclarations",),
    forbidden=("cachedContent",),
    anywhere=("fileData", "googleSearch", "googleSearchRetrieval", "urlContext", "codeExecution", "mcpServers"),
    sources=(
        "https://ai.google.dev/api/generate-content",
        "https://ai.google.dev/api/caching#Tool",
    ),
)

SERVICES = (ANTHROPIC, OPENAI, GOOGLE)
