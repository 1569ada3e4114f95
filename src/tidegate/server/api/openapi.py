"""The OpenAPI 3.1 document, made from the table of operations and the types they take and give.

Nothing in it is written twice: paths, parameters, bodies, bounds and answers come from what the server itself uses.
Source: OpenAPI Specification 3.1.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from tidegate import __version__
from tidegate.server.api.errors import ErrorAnswer
from tidegate.server.api.operation import ANYONE, OWNER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.server.api.operation import Operation

_WORDS: Final = {
    400: "malformed: the answer says where",
    401: "no token, or one that is not good",
    403: "not for this caller, or sent by a page of another origin",
    404: "there is no such thing",
    409: "it is in a state in which this cannot be done",
    413: "the body is too large",
    415: "the body is not JSON",
    421: "the Host header names another server",
    429: "too many, for now",
    503: "too many at once",
}
_PARAMETER = re.compile(r"\{(\w+)\}")


def document(operations: Sequence[Operation]) -> dict[str, Any]:
    """Return the document for these operations."""
    kinds: list[type[msgspec.Struct]] = [ErrorAnswer]
    for operation in operations:
        kinds += [kind for kind in (operation.body, operation.query) if kind is not None]
        if not isinstance(operation.answer, str):
            kinds.append(operation.answer)
    schemas, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    by_kind = dict(zip(kinds, schemas, strict=True))
    queries = {operation.query.__name__ for operation in operations}
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        entry = _operation(operation, by_kind, components)
        paths.setdefault(operation.path, {})[operation.method.lower()] = entry
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tidegate",
            "version": __version__,
            "description": "Tasks behind gates, their questions and their record. Times are Unix seconds.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": {name: schema for name, schema in components.items() if name not in queries},
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "Over the unix socket no token is needed: its callers are the server's own user.",
                }
            },
        },
    }


def _operation(
    operation: Operation, by_kind: dict[type[msgspec.Struct], dict[str, Any]], components: dict[str, Any]
) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "maxLength": 64}}
        for name in _PARAMETER.findall(operation.path)
    ]
    fields = components[operation.query.__name__]
    parameters += [
        {"name": name, "in": "query", "required": name in fields.get("required", ()), "schema": _without_null(schema)}
        for name, schema in fields.get("properties", {}).items()
    ]
    entry: dict[str, Any] = {
        "operationId": _name(operation),
        "summary": operation.summary,
        "responses": _responses(operation, by_kind),
    }
    if parameters:
        entry["parameters"] = parameters
    if operation.body is not None:
        entry["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": by_kind[operation.body]}},
        }
    if operation.role == ANYONE:
        entry["security"] = []
    return entry


def _responses(operation: Operation, by_kind: dict[type[msgspec.Struct], dict[str, Any]]) -> dict[str, Any]:
    good: dict[str, Any] = {"description": "done"}
    if isinstance(operation.answer, str):
        good["content"] = {operation.answer: {}}
    else:
        good["content"] = {"application/json": {"schema": by_kind[operation.answer]}}
    statuses = {400, 421, 429, 503, 403, *operation.errors}
    if operation.role != ANYONE:
        statuses.add(401)
    if "{" in operation.path:
        statuses.add(404)
    if operation.body is not None:
        statuses |= {413, 415}
    failure = {"application/json": {"schema": by_kind[ErrorAnswer]}}
    answers = {str(status): {"description": _WORDS[status], "content": failure} for status in sorted(statuses)}
    if operation.role == OWNER:
        answers["403"]["description"] = "an owner may do this, a viewer may not; or sent by a page of another origin"
    return {str(operation.status): good} | answers


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an optional parameter: absent is how a query says null."""
    choices = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
    kept = {key: value for key, value in schema.items() if key != "anyOf" and value is not None}
    return kept | choices[0] if len(choices) == 1 else kept | ({"anyOf": choices} if choices else {})


def _name(operation: Operation) -> str:
    words = [operation.method.lower(), *re.findall(r"[a-z]+", operation.path.removeprefix("/api"))]
    return "-".join(words)
