"""Tools for tests: small programs of this machine's Python, declared as a person declares them.

    declare(product, shout=tool("print(text.upper())", text={"type": "string"}))

A program has `data`, its input, and each property of it as a name.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.product import PYTHON

if TYPE_CHECKING:
    from tests.product import Product

BEGIN = "import json, os, sys, time\ndata = json.load(sys.stdin)\nglobals().update(data)\n"
URL = "http://tools.tidegate.internal"
POST = f"curl -sS -m 60 -H 'Content-Type: application/json' {URL}"


def tool(code: str, *, more: dict[str, Any] | None = None, **properties: Any) -> dict[str, Any]:
    """Return the declaration of a tool whose program is `code`; `properties` are those of its input, all required."""
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {
        "command": [PYTHON, "-I", "-c", BEGIN + code],
        "description": "For a test.",
        "input_schema": schema,
        **(more or {}),
    }


def declare(product: Product, **tools: dict[str, Any]) -> None:
    """Write the person's tools.yaml."""
    folder = product.home / ".config" / "tidegate"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tools.yaml").write_text(json.dumps({"tools": tools}))


def post(name: str, value: Any, *options: str) -> str:
    """Return the shell command that calls a tool."""
    return f"{POST}/{name} {' '.join(options)} -d '{json.dumps(value)}'"


def called(product: Product) -> list[dict[str, Any]]:
    """Return what the action log says of calls of tools."""
    lines = (product.state / "log" / "actions.jsonl").read_bytes().splitlines()
    return [line for line in map(json.loads, lines) if line["type"] == "tool.called"]
