"""The model services that tidegate knows: what an agent calls there, and by what a call asks them to act (INS-8).

Rules of the file:

* Data only. `calls` are all that passes; what is not in it is refused, uploads, batches, sessions that run elsewhere
  and stored prompts too, because they bring in what a later call only names.
* Tools by allow-list: what the agent's own machine runs, and what acts on nothing but the model. A kind of tool that is
  not known is refused, wherever in a call it stands.
* Sources say where each list is documented, or in which program's requests it was seen. Field names are compared as
  strict_json.plain does.
"""

from __future__ import annotations

from tidegate.model.value import Value

NONE, LOOK, PASS = "none", "look", "pass"
"""What of a call's body: it has none, it is JSON that is looked at, or it is passed on as it is (telemetry)."""


class Tool(Value):
    """A kind of tool that passes only as it is said here.

    `where` leads to the field that has to have exactly this `value`; `fields` are all that the tool may have.
    """

    kind: str
    where: tuple[str, ...]
    value: object
    fields: tuple[str, ...]


class Shape(Value):
    """What the body of a call may be.

    `tools` are values of `type` that the agent itself carries out (a `*` at the end: any that begin so), where `""` is
    a tool without one; `tools_if` more of them, under a condition; `tool_keys` the same for services whose tools are
    told by their one key. `forbidden` are fields of the body that have to be missing, null, false or empty; `anywhere`
    such fields of any object in it; `links` fields that may hold `data:` and nothing else; `types` values of `type`
    that no object may have; `models` words in the name of one that searches by itself.
    """

    name: str
    tools: tuple[str, ...] = ()
    tools_if: tuple[Tool, ...] = ()
    tool_keys: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    anywhere: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    models: tuple[str, ...] = ()


class Call(Value):
    """What an agent calls. `path` is a pattern as a rule has them; `body` one of the words above."""

    method: str
    path: str
    body: str = NONE
    shape: Shape | None = None


class Service(Value):
    """One service. `queries` are the parameters that a call whose body is looked at may have."""

    name: str
    calls: tuple[Call, ...]
    error: str
    queries: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


def _get(*paths: str) -> tuple[Call, ...]:
    return tuple(Call("GET", path) for path in paths)


def _told(*paths: str) -> tuple[Call, ...]:
    return tuple(Call("POST", path, PASS) for path in paths)


def _look(shape: Shape, *paths: str) -> tuple[Call, ...]:
    return tuple(Call("POST", path, LOOK, shape) for path in paths)


_NOWHERE = ("mcp_servers", "mcp_server", "webhook", "webhook_url", "webhook_config", "webhooks", "callback_url")
"""Fields by which a service speaks with somebody else, whatever service it is."""

MESSAGES = Shape(
    "anthropic",
    # tool_search_tool_* looks through the tools of the call itself, advisor_* asks another model about the call.
    # Behind each name comes its date, and nothing else: bash_code_execution runs at the service.
    tools=("", "custom", "bash_2*", "text_editor_2*", "computer_2*", "memory_2*", "tool_search_tool_*", "advisor_2*"),
    forbidden=("mcp_servers", "container"),
    anywhere=(*_NOWHERE, "file_id", "file_ids", "skills"),
    types=(
        *("url", "file", "container_upload"),  # of a source: fetched by the service
        *("mcp_*", "web_search_2*", "web_fetch_2*", "code_execution_2*", "memory_store", "vault"),
    ),
)

RESPONSES = Shape(
    "openai",
    tools=(
        *("function", "custom", "local_shell", "apply_patch", "computer", "computer_use_preview"),
        *("namespace", "tool_search", "image_generation"),  # act on the tools of the call itself, and on the model
    ),
    tools_if=(
        # Offline: answered from what the service has indexed, and nothing is fetched. Codex sends it by default.
        Tool(
            "web_search",
            ("external_web_access",),
            False,
            ("type", "external_web_access", "filters", "user_location", "search_context_size", "search_content_types"),
        ),
        Tool("shell", ("environment", "type"), "local", ("type", "environment", "allowed_callers")),
    ),
    forbidden=("web_search_options", "prompt", "conversation", "background"),
    anywhere=(
        *_NOWHERE,
        *("file_url", "file_id", "file_ids", "server_url", "connector_id", "tunnel_id", "vector_store_id"),
        *("vector_store_ids", "skill_id", "container", "container_id"),
    ),
    links=("image_url",),
    types=(
        *("mcp", "mcp_*", "file_search", "code_interpreter", "web_search_preview*", "programmatic_tool_calling"),
        *("container_auto", "container_reference", "skill_reference"),
    ),
    models=("search", "research"),
)

GENERATE = Shape(
    "google",
    tool_keys=("functionDeclarations",),
    forbidden=("cachedContent",),
    anywhere=(
        *_NOWHERE,
        *("fileData", "googleSearch", "googleSearchRetrieval", "googleMaps", "urlContext", "codeExecution"),
        *("fileSearch", "retrieval", "enterpriseWebSearch", "cachedContent"),
    ),
)

ANTHROPIC = Service(
    "anthropic",
    (
        *_look(MESSAGES, "/v1/messages", "/v1/messages/count_tokens"),
        # Claude Code's own: whether it is there, who is signed in, what the organisation set, how much is left.
        *_get("/", "/api/hello", "/v1/models", "/v1/models/*", "/api/oauth/profile", "/api/oauth/usage"),
        *_get("/api/oauth/account/settings", "/api/oauth/claude_cli/roles", "/api/claude_cli/bootstrap"),
        *_get("/api/claude_cli_profile", "/api/claude_code/settings", "/api/claude_code/policy_limits"),
        *_get("/api/claude_code/organizations/metrics_enabled", "/api/claude_code_grove"),
        *_get("/api/claude_code_penguin_mode", "/api/claude_code/notification/preferences"),
        *_told("/api/event_logging/batch", "/api/event_logging/v2/batch", "/api/claude_code/metrics"),
    ),
    "anthropic",
    queries=("beta",),
    sources=(
        "https://docs.claude.com/en/api/messages",
        "https://docs.claude.com/en/docs/agents-and-tools/tool-use/overview",
        "https://docs.claude.com/en/docs/agents-and-tools/mcp-connector",
        "https://github.com/anthropics/anthropic-sdk-python/blob/main/src/anthropic/types/beta/beta_tool_union_param.py",
        "https://www.npmjs.com/package/@anthropic-ai/claude-code",  # the rest, as 2.1.197 has it
    ),
)

OPENAI = Service(
    "openai",
    (
        *_look(RESPONSES, "/v1/responses", "/v1/responses/compact", "/v1/responses/input_tokens"),
        *_look(RESPONSES, "/v1/chat/completions", "/v1/embeddings"),
        *_get("/v1/models", "/v1/models/*"),
    ),
    "openai",
    sources=(
        "https://platform.openai.com/docs/api-reference/responses/create",
        "https://platform.openai.com/docs/guides/tools",
        "https://platform.openai.com/docs/api-reference/chat/create",
        "https://github.com/openai/openai-python/blob/main/src/openai/types/responses/tool_param.py",
        "https://learn.microsoft.com/dotnet/api/azure.ai.projects.agents.websearchtoolboxtool.externalwebaccess",
    ),
)

CODEX = Service(
    "codex",
    (
        *_look(RESPONSES, "/backend-api/codex/responses", "/backend-api/codex/responses/compact"),
        *_get("/backend-api/codex/models", "/backend-api/codex/config/bundle", "/backend-api/wham/usage"),
        *_get("/backend-api/wham/accounts/check", "/backend-api/wham/config/bundle", "/backend-api/wham/settings/user"),
        *_get("/backend-api/wham/rate-limit-reset-credits", "/backend-api/wham/workspace-messages"),
        *_get("/backend-api/wham/profiles/me", "/backend-api/plugins/featured"),
        *_told("/backend-api/codex/analytics-events/events"),
    ),
    "openai",
    sources=(
        "https://github.com/openai/codex/tree/main/codex-rs/codex-api/src/endpoint",
        "https://www.npmjs.com/package/@openai/codex",  # as 0.171.0 has it
    ),
)

GOOGLE = Service(
    "google",
    (
        *_look(GENERATE, "/v1beta/models/*:generateContent", "/v1beta/models/*:streamGenerateContent"),
        *_look(GENERATE, "/v1beta/models/*:countTokens", "/v1beta/models/*:embedContent"),
        *_get("/v1beta/models", "/v1beta/models/*"),
    ),
    "google",
    queries=("alt", "key"),
    sources=(
        "https://ai.google.dev/api/generate-content",
        "https://ai.google.dev/api/caching#Tool",
        "https://github.com/googleapis/python-genai/blob/main/google/genai/types.py",
    ),
)

CODE_ASSIST = Service(
    "code-assist",
    (
        # The same calls one level down: {"model", "project", "request": {...}}.
        *_look(GENERATE, "/v1internal:generateContent", "/v1internal:streamGenerateContent"),
        *_look(GENERATE, "/v1internal:countTokens"),
        # Who is signed in, what is left, what an administrator set; a setting of the account is read and not changed.
        *_told("/v1internal:loadCodeAssist", "/v1internal:onboardUser", "/v1internal:fetchAdminControls"),
        *_told("/v1internal:listExperiments", "/v1internal:retrieveUserQuota"),
        *_get("/v1internal:getCodeAssistGlobalUserSetting", "/v1internal/operations/*"),
        *_told("/v1internal:recordCodeAssistMetrics"),
    ),
    "google",
    queries=("alt",),
    sources=(
        "https://github.com/google-gemini/gemini-cli/blob/main/packages/core/src/code_assist/server.ts",
        "https://www.npmjs.com/package/@google/gemini-cli",  # as 0.61.0 has it
    ),
)

FACTORY = Service(
    "factory",
    (
        # Models, in the shapes of those who made them.
        *_look(MESSAGES, "/api/llm/a/v1/messages", "/api/llm/a/v1/messages/count_tokens"),
        *_look(RESPONSES, "/api/llm/o/v1/responses", "/api/llm/o/v1/chat/completions"),
        *_look(GENERATE, "/api/llm/g/v1beta/models/*:generateContent", "/api/llm/g/v1/models/*:generateContent"),
        *_look(GENERATE, "/api/llm/g/v1beta/models/*:streamGenerateContent"),
        *_look(GENERATE, "/api/llm/g/v1/models/*:streamGenerateContent"),
        # Settings and limits.
        *_get("/api/hello", "/api/cli/whoami", "/api/feature-flags", "/api/organization/managed-settings"),
        *_get("/api/billing/limits", "/api/organization/subscription/usage", "/api/app/auth/me"),
        # The copy of the session.
        *_get("/api/sessions", "/api/sessions/*"),
        *_told("/api/sessions/create", "/api/sessions/*/message/create", "/api/sessions/*/update-settings"),
        *_told("/api/sessions/*/update-title", "/api/sessions/*/droid-status"),
        # Telemetry.
        *_told("/api/ingest", "/api/otlp/traces/ingest", "/api/telemetry/cli-ingest"),
        *_told("/api/telemetry/otlp/traces/ingest", "/api/llm/failed-requests", "/api/llm/custom/usage"),
    ),
    "openai",
    queries=("beta", "alt"),
    sources=(
        "https://docs.factory.ai/enterprise/network-and-deployment",
        "https://docs.factory.ai/enterprise/privacy-and-data-flows",
        "https://www.npmjs.com/package/@factory/cli",  # paths as others saw them of 0.109 and 0.189; not run here
    ),
)

SERVICES = {service.name: service for service in (ANTHROPIC, OPENAI, CODEX, GOOGLE, CODE_ASSIST, FACTORY)}
"""By the names that policy.model_hosts has for them."""
