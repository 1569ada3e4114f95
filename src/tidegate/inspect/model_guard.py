"""Looks at what an agent asks of its model service: a call that lets the service reach out for it is refused (INS-8).

The service runs outside of the hold. Told to fetch a page, search, or speak with an MCP server, it would carry data of
the task to wherever the task says: a way around the gate that no rule about hosts can see.

Rules of the file:

* What is let through is a call of the table (model_services.py), with parts that are known to act on nothing but the
  model. A path, a query or a kind of tool that is not known is refused, and so is a body that two readers could read
  differently (strict_json.py).
* Paths are judged by the policy's matcher, and more strictly than a rule's: what stands beside the fixed words of it is
  a name of a model or a session, so letters, digits, '.', '_' and '-'; one ':' at most, because behind it Google has
  what is to be done.
* Tools are looked for in every object: a service may take them in the midst of a conversation too.
"""

from __future__ import annotations

from functools import cache

from tidegate.inspect import strict_json
from tidegate.inspect.coded_body import can_decode
from tidegate.inspect.model_services import LOOK
from tidegate.inspect.strict_json import UnclearError, plain
from tidegate.policy.alternatives import path_matcher
from tidegate.policy.paths import OVERRIDES, normal_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from tidegate.inspect.model_services import Call, Service, Shape, Tool

_EMPTY: tuple[object, ...] = (None, "", [], {}, False)


def find_call(service: Service, method: str, target: bytes) -> Call | None:
    """Return what is called by this method at this target, None for what no agent calls."""
    path = normal_path(target)
    if path is None or not (path == _ROOT or all(map(_is_name, path[1:]))):
        return None
    if sum(segment.count(":") for segment in path) > 1:
        return None
    for call in service.calls:
        if (call.method == method or (method == "HEAD" and call.method == "GET")) and _matcher(call.path)(path):
            if call.body == LOOK and not _known_query(service, target):
                return None
            return call
    return None


@cache
def _matcher(pattern: str) -> Callable[[list[str]], bool]:
    return path_matcher(pattern)  # a table of our own: there are no more than it has


def _is_name(segment: str) -> bool:
    return segment.translate(_OTHER_SIGNS).isalnum() and segment[0] != ":"


_ROOT = ["", ""]  # of "/"
_OTHER_SIGNS = {ord(sign): "a" for sign in "._-:"}


def _known_query(service: Service, target: bytes) -> bool:
    query = target.partition(b"?")[2]
    names = [one.partition(b"=")[0].decode("latin-1") for one in query.split(b"&") if one]
    return b";" not in query and all(name in service.queries for name in names)


_READ_BY = frozenset((b"content-type", b"content-encoding", b"content-length", b"transfer-encoding"))
"""Headers by which a body is read; servers that hand them on as variables know no difference between '-' and '_'."""


def why_head_refused(call: Call, fields: Iterable[tuple[bytes, bytes]], *, empty: bool) -> str:
    """Why a request with these header fields cannot be let through or looked at, in one clause; '' where it can.

    `empty` says that it has no body.
    """
    found: dict[bytes, bytes] = {}
    for name, value in fields:
        lowered = name.lower()
        if lowered in OVERRIDES:
            return f"'{lowered.decode()}' makes another request of it"
        if lowered in {b"content-type", b"content-encoding"} and lowered in found:
            return f"it has '{lowered.decode()}' twice"
        if b"_" in lowered and lowered.replace(b"_", b"-") in _READ_BY:
            return f"'{lowered.decode()}' is another header to some servers"
        found[lowered] = value.strip()
    if call.method == "GET" and not empty:
        return "it has a body, and such a call has none"
    if call.body != LOOK:
        return ""
    kind, _, rest = found.get(b"content-type", b"").lower().partition(b";")
    if kind.strip() != b"application/json":
        return "the body is not application/json, and has to be read"
    if rest.strip().replace(b'"', b"") not in {b"", b"charset=utf-8"}:
        return "the body is not in UTF-8, and has to be read"
    if not can_decode(found.get(b"content-encoding", b"").lower()):
        return "the body has a coding that cannot be taken off, and has to be read"
    return ""


def why_refused(shape: Shape, data: bytes) -> str:
    """Why a call with this body is refused, in one clause; '' where it passes."""
    try:
        body = strict_json.read(data)
    except UnclearError as error:
        return str(error)
    if not isinstance(body, dict):
        return "the body is no object"
    fields = {plain(key): value for key, value in body.items()}
    for name in shape.forbidden:
        if fields.get(plain(name)) not in _EMPTY:
            return f"it has '{name}', by which the service acts for the task"
    model = fields.get("model")
    if isinstance(model, str) and any(word in model.lower().split("-") for word in shape.models):
        return f"the model {ascii(model)[:80]} searches by itself"
    looked = _Looked(shape)
    return next((why for one in _objects(body, shape) if (why := looked.why(one))), "")


class _Looked:
    """The names of a shape in the form in which they are compared."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._anywhere = {plain(name): name for name in shape.anywhere}
        self._links = {plain(name): name for name in shape.links}
        self._tool_keys = {plain(name) for name in shape.tool_keys}
        self._types = frozenset(kind for kind in shape.types if kind[-1] != "*")
        self._begin = tuple(kind[:-1] for kind in shape.types if kind[-1] == "*")

    def why(self, one: dict[str, Any]) -> str:
        """Why this object is in no call that passes, '' where it may be."""
        for key, value in one.items():
            name = plain(key)
            if name == "tools" and value not in _EMPTY:
                why = self._why_not_tools(value)
                if why:
                    return why
            if name in self._anywhere and value not in _EMPTY:
                return f"it has '{self._anywhere[name]}', which the service fetches or asks"
            if name in self._links and value not in _EMPTY:
                target = value.get("url") if isinstance(value, dict) else value
                if not isinstance(target, str) or not target.startswith("data:"):
                    return f"it has '{self._links[name]}' that is no data: URL, which the service fetches"
            if name == "type" and isinstance(value, str) and (value in self._types or value.startswith(self._begin)):
                return f"it has a part of the type {ascii(value)[:80]}, which the service fetches or carries out"
        return ""

    def _why_not_tools(self, tools: Any) -> str:
        if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
            return "its tools are no list of objects"
        return next((why for tool in tools if (why := self._why_not_tool(tool))), "")

    def _why_not_tool(self, tool: dict[str, Any]) -> str:
        if self._tool_keys:
            other = next((key for key in tool if plain(key) not in self._tool_keys), None)
            return "" if other is None else f"it has the tool {ascii(other)[:80]}, which the service carries out"
        kind = {plain(key): value for key, value in tool.items()}.get("type", "")
        kind = "" if kind is None else kind
        if isinstance(kind, str):
            if any(_is_kind(one, kind) for one in self._shape.tools):
                return ""
            if any(one.kind == kind and _is_as_said(one, tool) for one in self._shape.tools_if):
                return ""
        return f"it has a tool of the type {ascii(kind)[:80]}, which the service carries out"


def _is_as_said(wanted: Tool, tool: dict[str, Any]) -> bool:
    if not {plain(key) for key in tool} <= {plain(field) for field in wanted.fields}:
        return False
    found: Any = tool
    for step in wanted.where:
        found = (
            {plain(key): value for key, value in found.items()}.get(plain(step)) if isinstance(found, dict) else None
        )
    return type(found) is type(wanted.value) and found == wanted.value


_OPAQUE = {"inputschema", "parameters", "parametersjsonschema", "responseschema", "responsejsonschema", "schema"}
"""Fields that describe data to the model; what they name is no request."""
_ARGUMENTS = {"input", "args", "arguments", "response"}
"""Fields with what a tool was called with or gave back, in parts that say so."""
_CALLED = {"tooluse", "functioncall", "functionresponse"}


def _objects(body: dict[str, Any], shape: Shape) -> Iterator[dict[str, Any]]:
    """Yield every object that the service reads as a part of the request."""
    waiting: list[tuple[Any, bool]] = [(body, False)]
    while waiting:
        one, called = waiting.pop()
        if isinstance(one, list):
            waiting += [(part, called) for part in one]
        if not isinstance(one, dict):
            continue
        kind = next((value for key, value in one.items() if plain(key) == "type"), None)
        called = one is not body and (called or (isinstance(kind, str) and plain(kind) in _CALLED))
        yield one
        for key, value in one.items():
            name = plain(key)
            if name in _OPAQUE or (called and name in _ARGUMENTS and isinstance(value, dict)):
                continue
            waiting.append((value, shape.tool_keys != () and name in _CALLED))


def _is_kind(pattern: str, kind: str) -> bool:
    return kind.startswith(pattern[:-1]) if pattern.endswith("*") else kind == pattern
