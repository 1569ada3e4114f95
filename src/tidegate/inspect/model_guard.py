"""Looks at what an agent asks of its model service: a call that lets the service reach out for it is refused (INS-8).

The service runs outside of the hold. Told to fetch a page, search, or speak with an MCP server, it would carry data of
the task to wherever the task says: a way around the gate that no rule about hosts can see.

Invariant: None is returned only for a call whose every part is known to act on nothing but the model. What is not
known is refused: another path, another kind of tool, a body that two readers could read differently.
"""

from __future__ import annotations

from tidegate.inspect import strict_json
from tidegate.inspect.model_services import SERVICES
from tidegate.inspect.strict_json import UnclearError, plain
from tidegate.policy.paths import OVERRIDES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from tidegate.inspect.model_services import Call, Service

MOST = 32 * 1024 * 1024
"""Bytes of a body that is looked at: what Anthropic takes at most; more is refused."""

_CODED = "the body is compressed, and has to be read: let the client send it plain"


def service_at(host: str) -> Service | None:
    """Return the service at this host, None where none is known."""
    return next((service for service in SERVICES if host in service.hosts), None)


def find_call(service: Service, method: str, path: str) -> Call | None:
    """Return what is called by this method at this path (without a query), None for what no agent calls."""
    for call in service.calls:
        if (call.method == method or (method == "HEAD" and call.method == "GET")) and _matches(call.path, path):
            return call
    return None


def why_head_refused(call: Call, fields: Iterable[tuple[bytes, bytes]]) -> str:
    """Why a request with these header fields cannot be let through or looked at, in one clause; '' where it can."""
    found: dict[bytes, bytes] = {}
    for name, value in fields:
        lowered = name.lower()
        if lowered in OVERRIDES:
            return f"'{lowered.decode()}' makes another request of it"
        if lowered in {b"content-type", b"content-encoding"} and lowered in found:
            return f"it has '{lowered.decode()}' twice"
        found[lowered] = value.strip()
    if not call.body:
        return ""
    kind, _, rest = found.get(b"content-type", b"").lower().partition(b";")
    if kind.strip() != b"application/json":
        return "the body is not application/json, and has to be read"
    if rest.strip().replace(b'"', b"") not in {b"", b"charset=utf-8"}:
        return "the body is not in UTF-8, and has to be read"
    return "" if found.get(b"content-encoding", b"").lower() in {b"", b"identity"} else _CODED


def why_refused(service: Service, data: bytes) -> str:
    """Why a call with this body is refused, in one clause; '' where it passes."""
    try:
        body = strict_json.read(data)
    except UnclearError as error:
        return str(error)
    if not isinstance(body, dict):
        return "the body is no object"
    fields = {plain(key): value for key, value in body.items()}
    for name in service.forbidden:
        if fields.get(plain(name)):
            return f"it has '{name}', by which the service acts for the task"
    model = fields.get("model")
    if isinstance(model, str) and any(word in model.lower().split("-") for word in service.models):
        return f"the model {ascii(model)[:80]} searches by itself"
    return _why_not_tools(service, fields.get("tools")) or _why_not_parts(service, body)


def _why_not_tools(service: Service, tools: Any) -> str:
    if not tools:
        return ""
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        return "its tools are no list of objects"
    for tool in tools:
        if service.tool_keys:
            allowed = {plain(key) for key in service.tool_keys}
            for key in tool:
                if plain(key) not in allowed:
                    return f"it has the tool {ascii(key)[:80]}, which the service carries out"
            continue
        kind = {plain(key): value for key, value in tool.items()}.get("type", "")
        if kind is None:
            kind = ""
        if not isinstance(kind, str) or not any(_is_kind(one, kind) for one in service.tools):
            return f"it has a tool of the type {ascii(kind)[:80]}, which the service carries out"
    return ""


def _why_not_parts(service: Service, body: dict[str, Any]) -> str:
    anywhere = {plain(name): name for name in service.anywhere}
    links = {plain(name): name for name in service.links}
    for one in _objects(body, service):
        for key, value in one.items():
            name = plain(key)
            if name in anywhere and value not in (None, "", [], {}):
                return f"it has '{anywhere[name]}', which the service fetches or asks"
            if name in links:
                target = value.get("url") if isinstance(value, dict) else value
                if not isinstance(target, str) or not target.startswith("data:"):
                    return f"it has '{links[name]}' that is no data: URL, which the service fetches"
            if name == "type" and value in service.types:
                return f"it has a part of the type '{value}', which the service fetches"
    return ""


_OPAQUE = {"inputschema", "parameters", "parametersjsonschema", "responseschema", "responsejsonschema", "schema"}
"""Fields that describe data to the model; what they name is no request."""
_ARGUMENTS = {"input", "args", "arguments", "response"}
"""Fields with what a tool was called with or gave back, in parts that say so."""
_CALLED = {"tooluse", "functioncall", "functionresponse"}


def _objects(body: dict[str, Any], service: Service) -> Iterator[dict[str, Any]]:
    """Yield every object that the service reads as a part of the request."""
    waiting: list[tuple[Any, bool]] = [(body, False)]
    while waiting:
        one, called = waiting.pop()
        if isinstance(one, list):
            waiting += [(part, called) for part in one]
        if not isinstance(one, dict):
            continue
        kind = next((value for key, value in one.items() if plain(key) == "type"), None)
        called = called or (isinstance(kind, str) and plain(kind) in _CALLED)
        yield one
        for key, value in one.items():
            name = plain(key)
            if name in _OPAQUE or (called and name in _ARGUMENTS and isinstance(value, dict)):
                continue
            waiting.append((value, service.tool_keys != () and name in _CALLED))


def _is_kind(pattern: str, kind: str) -> bool:
    return kind.startswith(pattern[:-1]) if pattern.endswith("*") else kind == pattern


def _matches(pattern: str, path: str) -> bool:
    wanted, found = pattern.split("/"), path.split("/")
    return len(wanted) == len(found) and all(map(_segment, wanted, found))


def _segment(pattern: str, segment: str) -> bool:
    before, star, after = pattern.partition("*")
    if not star:
        return segment == pattern
    inside = segment[len(before) : len(segment) - len(after)]
    fits = segment.startswith(before) and segment.endswith(after) and len(segment) > len(before) + len(after)
    return fits and inside.replace("-", "").replace(".", "").replace("_", "").isalnum() and inside.isascii()
