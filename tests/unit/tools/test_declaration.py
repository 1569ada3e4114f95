"""tidegate.tools.declaration: what declares a tool, and every error with its place."""

from __future__ import annotations

import pytest

from tidegate.policy.positions import PolicyErrors
from tidegate.tools.declaration import load_tools

WHOLE = b"""
tools:
  charge:
    command: [/usr/local/bin/charge, --test]
    description: Charge a card.
    input_schema:
      type: object
      properties: {amount: {type: integer, minimum: 1}}
      required: [amount]
    hosts: [api.pay.example.com:443]
    apply_task_hosts: true
    timeout_seconds: 2.5
    max_output_bytes: 10
    max_input_bytes: 20
    calls_per_minute: 3
    env: [LANG]
    secrets: [PAY_KEY]
  plain:
    command: [/bin/true]
    description: Do nothing.
"""


def test_a_file_declares_tools() -> None:
    """SRV-6: every key has its effect, and what is left out its default; hosts are kept for people."""
    charge, plain = load_tools(WHOLE, "tools.yaml")
    assert (charge.name, charge.command) == ("charge", ("/usr/local/bin/charge", "--test"))
    assert (charge.hosts, charge.apply_task_hosts) == (("api.pay.example.com:443",), True)
    assert (charge.timeout_seconds, charge.max_output_bytes, charge.max_input_bytes) == (2.5, 10, 20)
    assert (charge.calls_per_minute, charge.env, charge.secrets) == (3, ("LANG",), ("PAY_KEY",))
    assert charge.source == "tools.yaml:3:3"
    assert (plain.hosts, plain.apply_task_hosts, plain.timeout_seconds) == ((), False, 60.0)
    assert plain.input_schema == {"type": "object", "properties": {}, "additionalProperties": False}


@pytest.mark.parametrize("text", [b"tools: {}", b'{"tools": {}}'])
def test_a_file_may_declare_none(text: bytes) -> None:
    """SRV-6: no tool is no error."""
    assert load_tools(text, "t") == ()


def one(body: str, name: str = "a") -> bytes:
    """A file with one tool, whose other keys are right."""
    keys = {"command": "[/bin/true]", "description": "x"}
    lines = [f"    {key}: {value}" for key, value in keys.items() if f"{key}:" not in body]
    return f"tools:\n  {name}:\n".encode() + "\n".join([*lines, f"    {body}"]).encode()


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        (b"", "t", "declares no tool"),
        (b"tool: {}", "t:1:1", "write 'tools'"),
        (b"tools: [a]", "t:1:8", "a list where a mapping belongs"),
        (one("x: 1", "A"), "t:2:3", "no name of a tool"),
        (one("x: 1", "mcp"), "t:2:3", "no name of a tool"),
        (one("x: 1", "a/b"), "t:2:3", "no name of a tool"),
        (one("x: 1", "1"), "t:2:3", "no name of a tool"),
        (b"tools: {a: {command: [/bin/true], description: x}, a: {}}", "t:1:", "a tool twice"),
        (one("command: /bin/true"), "t:4:", "no shell reads it"),
        (one("command: [true]"), "t:4:", "a truth value where a text belongs"),
        (one("command: [ls, -l]"), "t:4:", "named by its whole path"),
        (one("command: []"), "t:4:", "named by its whole path"),
        (one('command: [/bin/ls, "a\\0b"]'), "t:4:", "more than a command line"),
        (one("description: ''"), "t:4:", "1 to 2000 characters"),
        (one("input_schema: {type: string}"), "t:5:", "what a tool takes is an object"),
        (one("input_schema: {type: object, oneOf: []}"), "t:5:", "'oneOf' is not checked"),
        (one("input_schema: {type: object, properties: {n: {const: .inf}}}"), "t:5:", "JSON does not know"),
        (one("input_schema: {type: object, type: string}"), "t:5:", "a key twice"),
        (one("hosts: [https://x/]"), "t:5:", "https://x/"),
        (one("apply_task_hosts: yes"), "t:5:", "a text where a truth value belongs"),
        (one("timeout_seconds: 0"), "t:5:", "outside its bounds"),
        (one("timeout_seconds: 7200"), "t:5:", "outside its bounds"),
        (one("max_output_bytes: 1.5"), "t:5:", "a whole number"),
        (one("env: [A=b]"), "t:5:", "a value has no place here"),
        (one("env: [PATH]"), "t:5:", "has one of its own"),
        (one("secrets: ['../x']"), "t:5:", "no name for 'secrets'"),
        (one("args: [x]"), "t:5:", "write them behind the program"),
        (one("timeout: 5"), "t:5:", "write 'timeout_seconds'"),
        (b"tools: {a: {command: [/bin/true]}}", "t:1:", "needs 'description'"),
        (b"tools: {a: {description: x}}", "t:1:", "needs 'command'"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: bytes, where: str, what: str) -> None:
    """SRV-6, POL-2: nothing is guessed or converted; the error names file, line, column and what to write instead."""
    with pytest.raises(PolicyErrors) as raised:
        load_tools(text, "t")
    assert any(line.startswith(where) and what in line for line in raised.value.lines()), raised.value.lines()


def test_all_errors_are_said_at_once() -> None:
    """SRV-6: two tools that are wrong are two errors."""
    with pytest.raises(PolicyErrors) as raised:
        load_tools(b"tools:\n  a: {command: [x], description: x}\n  b: {command: [y], description: x}\n", "t")
    assert raised.value.count == 2
