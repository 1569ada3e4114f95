"""The document is made from the table of operations."""

from __future__ import annotations

import json
from typing import Any, cast

from tests.unit.server.api.running import OPERATIONS
from tidegate.server.api.general import General
from tidegate.server.api.openapi import document


def test_it_says_of_each_operation_what_it_takes_and_gives() -> None:
    """SRV-1: paths, parameters, bodies with their bounds, roles and every status stand in it."""
    found = document(OPERATIONS)
    assert found["openapi"] == "3.1.0"
    assert set(found["paths"]) == {operation.path for operation in OPERATIONS}
    make = found["paths"]["/api/things"]["post"]
    assert make["requestBody"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Body"}
    assert {"201", "400", "401", "403", "413", "415", "421"} <= set(make["responses"])
    look = found["paths"]["/api/things"]["get"]
    assert look["parameters"] == [
        {"name": "limit", "in": "query", "required": False, "schema": {"type": "integer", "default": 5}}
    ]
    assert "413" not in look["responses"]
    assert found["paths"]["/api/things/{id}"]["delete"]["parameters"][0]["in"] == "path"
    assert "404" in found["paths"]["/api/things/{id}"]["get"]["responses"]
    assert found["paths"]["/api/open"]["get"]["security"] == []
    assert found["components"]["schemas"]["Body"]["additionalProperties"] is False
    assert "Query" not in found["components"]["schemas"]


def test_every_reference_leads_somewhere_and_names_are_given_once() -> None:
    """SRV-1: no dangling reference, no operation id twice."""
    found = document(OPERATIONS)
    text = json.dumps(found)
    schemas = found["components"]["schemas"]
    references = {part.split('"')[0] for part in text.split('"#/components/schemas/')[1:]}
    assert references <= set(schemas)
    names = [operation["operationId"] for path in found["paths"].values() for operation in path.values()]
    assert len(names) == len(set(names))


def test_it_is_served_as_it_was_made() -> None:
    """SRV-1: what /api/openapi.json gives is the document of the operations that were published."""
    general = General(cast("Any", None))
    general.publish(OPERATIONS)
    assert json.loads(general.document) == json.loads(json.dumps(document(OPERATIONS)))
