"""`tools.yaml` -> the tools that it declares, or every error in it at once (SRV-6).

    tools:
      charge:
        command: [/usr/local/bin/charge, --test]
        description: Charge a card in the test network.
        input_schema:
          type: object
          properties: {amount: {type: integer, minimum: 1}}
          required: [amount]
        hosts: [api.pay.example.com:443]

Rules of the file: a tool is declared by the user or the administrator, never where a task can write; nothing is
guessed; a program is named by its whole path, so that no PATH decides what runs. `hosts` are for people: they limit
nothing.

It reads no file, and does not look whether there is such a program.
"""

from __future__ import annotations

import re
from math import isfinite
from typing import TYPE_CHECKING, Final

from tidegate.model.value import Value
from tidegate.policy.document import parse_document
from tidegate.policy.nodes import Broken, Mapping, Node, Scalar, Sequence
from tidegate.policy.positions import Problems
from tidegate.policy.reading import Reader
from tidegate.policy.rules import RuleError, parse_rule
from tidegate.tools.schema import SchemaError, normal

if TYPE_CHECKING:
    from typing import Any

TOOL_KEYS: Final = (
    "command", "description", "input_schema", "hosts", "apply_task_hosts", "timeout_seconds", "max_output_bytes",
    "max_input_bytes", "calls_per_minute", "env", "secrets",
)  # fmt: skip
MOST_TOOLS: Final = 64
NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,47}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_SECRET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
TAKEN: Final = frozenset(("mcp",))  # a path of the gate's own name that is no tool
OURS: Final = frozenset(("HOME", "TMPDIR", "PATH"))  # what a tool's program is given anyway
_MAX_TEXT: Final = 2000
_MAX_WORDS: Final = 64
_MAX_WORD: Final = 4096
_MAX_LIST: Final = 64
_EMPTY_INPUT: Final[dict[str, Any]] = {"type": "object", "properties": {}, "additionalProperties": False}
_HINTS: Final = {
    "args": "write them behind the program, in 'command'",
    "schema": "write 'input_schema'",
    "timeout": "write 'timeout_seconds'",
    "environment": "write 'env', a list of names",
}


class Tool(Value):
    """One tool. `command` is its program's path and what comes behind; `hosts` are for people.

    `input_schema` is normal (schema.py). `source` is where it is declared, `env` names variables of the person's
    environment that its program gets, `secrets` those of the secret store.
    """

    name: str
    command: tuple[str, ...]
    description: str
    input_schema: dict[str, Any]
    source: str
    hosts: tuple[str, ...] = ()
    apply_task_hosts: bool = False
    timeout_seconds: float = 60.0
    max_output_bytes: int = 1 << 20
    max_input_bytes: int = 1 << 18
    calls_per_minute: int = 60
    env: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()


# Least, most. A tool that takes longer is a job, and a task has other means to wait for one.
_BOUNDS: Final = {
    "timeout_seconds": (0.1, 3600.0),
    "max_output_bytes": (1, 16 << 20),
    "max_input_bytes": (2, 4 << 20),
    "calls_per_minute": (1, 6000),
}


def load_tools(text: bytes, filename: str) -> tuple[Tool, ...]:
    """Return the tools that a file's text declares, in its order. `filename` is only named, not opened.

    Raises:
        PolicyErrors: with every error of the text.
    """
    problems = Problems(filename)
    loader = _Loader(problems)
    with problems:
        root = parse_document(text, problems)
        if root is not None:
            loader.root(root)
        elif not problems:
            problems.add(0, 0, "the file declares no tool", "", "write 'tools: {}', or remove the file")
    return tuple(loader.tools)


class _Loader:
    """Walks one tree in the order of its text and gathers tools."""

    def __init__(self, problems: Problems) -> None:
        self._read = Reader(problems)
        self.tools: list[Tool] = []

    def root(self, node: Node) -> None:
        """Read the top level."""
        for _key, _, value in self._read.pairs(node, "a file of tools", ("tools",), None, "write 'tools:'"):
            if not isinstance(value, Mapping):
                self._read.mismatch(
                    value, "'tools'", "a mapping", "write 'NAME: {command: [/path/to/program]}' below it"
                )
                continue
            seen: set[str] = set()
            for key, tool in value.pairs:
                name = key.text if isinstance(key, Scalar) else ""
                if isinstance(key, Broken):
                    continue
                if name in seen:
                    self._read.wrong(key, "a tool twice", name, "keep one of them")
                elif NAME.fullmatch(name) is None or name in TAKEN or not (isinstance(key, Scalar) and key.is_text):
                    advice = "write lower-case letters, digits, '-' and '_', beginning with a letter; 'mcp' is taken"
                    self._read.wrong(key, "no name of a tool", name, advice)
                else:
                    self._tool(name, key, tool)
                seen.add(name)
            if len(seen) > MOST_TOOLS:
                self._read.wrong(value, f"more than {MOST_TOOLS} tools", "", "declare what is used")

    def _tool(self, name: str, key: Scalar, node: Node) -> None:
        read = self._read
        found: dict[str, Any] = {}
        of = f"the tool {name!r}"
        for part, _, value in read.pairs(node, of, TOOL_KEYS, _HINTS, "write '{command: [/path/to/program]}'"):
            if part == "command":
                found[part] = self._command(value)
            elif part == "description":
                found[part] = self._description(value)
            elif part == "input_schema":
                found[part] = self._schema(value)
            elif part == "hosts":
                found[part] = self._hosts(value)
            elif part == "apply_task_hosts":
                found[part] = read.flag(value, f"'{part}'") is True
            elif part in ("env", "secrets"):
                found[part] = self._names(value, part)
            else:
                least, most = _BOUNDS[part]
                number = read.number(value, f"'{part}'", least, most, whole=part != "timeout_seconds")
                if number is not None:
                    found[part] = number
        if not isinstance(node, Mapping):
            return
        for part, example in (("command", "[/path/to/program]"), ("description", "what it does, in a sentence")):
            if part not in found:
                read.wrong(node, f"{of} needs '{part}'", "", f"write '{part}: {example}'")
        if read.problems:
            return
        found.setdefault("input_schema", _EMPTY_INPUT)
        self.tools.append(Tool(name=name, source=read.source(key.mark), **found))

    def _command(self, node: Node) -> tuple[str, ...]:
        read = self._read
        example = "write '[/path/to/program, argument]'"
        if isinstance(node, Scalar):
            read.wrong(node, "a text where a list belongs ('command'): no shell reads it", node.text, example)
            return ()
        words = [read.text(item, "a word of 'command'") for item in read.items(node, "'command'", example)]
        if None in words or not isinstance(node, Sequence):
            return ()
        known = [word for word in words if word is not None]
        if not known or not known[0].startswith("/"):
            shown = known[0] if known else ""
            read.wrong(node, "the program is named by its whole path", shown, example)
        elif len(known) > _MAX_WORDS or any(len(word) > _MAX_WORD or "\0" in word for word in known):
            read.wrong(node, "it is more than a command line of a tool holds", "", "put it into a script")
        return tuple(known)

    def _description(self, node: Node) -> str:
        text = self._read.text(node, "'description'") or ""
        if len(text) > _MAX_TEXT or not text.strip():
            self._read.wrong(node, f"a description has 1 to {_MAX_TEXT} characters", "", "write a sentence or two")
        return text

    def _schema(self, node: Node) -> dict[str, Any]:
        try:
            schema = normal(_plain(node))
        except SchemaError as error:
            self._read.wrong(node, f"{error.where}: {error.what}", "", error.advice)
            return {}
        if schema.get("type") != "object":
            self._read.wrong(node, "what a tool takes is an object", "", "write 'type: object' and 'properties'")
        return schema

    def _hosts(self, node: Node) -> tuple[str, ...]:
        read = self._read
        found = []
        items = read.items(node, "'hosts'", "write '[api.example.com:443]', or [] for none")
        for item in items[:_MAX_LIST]:
            text = read.text(item, "a host")
            try:
                if text is not None:
                    found.append(parse_rule(text).text)
            except RuleError as error:
                read.wrong(item, error.what, text or "", error.advice)
        if len(items) > _MAX_LIST:
            read.wrong(node, f"more than {_MAX_LIST} hosts", "", "name those that matter")
        return tuple(found)

    def _names(self, node: Node, part: str) -> tuple[str, ...]:
        read = self._read
        fits = _VARIABLE if part == "env" else _SECRET
        found: dict[str, None] = {}
        for item in read.items(node, f"'{part}'", "write a list of names"):
            name = read.text(item, f"a name in '{part}'")
            if name is None:
                continue
            if fits.fullmatch(name) is None:
                read.wrong(item, f"no name for '{part}'", name, "write the name alone; a value has no place here")
            elif part == "env" and name in OURS:
                read.wrong(item, "a tool has one of its own", name, "leave it out, or set it in a script")
            found[name] = None
        if len(found) > _MAX_LIST:
            read.wrong(node, f"more than {_MAX_LIST} names in '{part}'", "", "name those that it needs")
        return tuple(found)


def _plain(node: Node) -> Any:
    """Return the value of a tree, as JSON has it."""
    if isinstance(node, Scalar):
        meaning = node.meaning
        if isinstance(meaning, float) and not isfinite(meaning):
            raise SchemaError("input_schema", "a number that JSON does not know", "write a plain one")
        return meaning
    if isinstance(node, Sequence):
        return [_plain(one) for one in node.items]
    if isinstance(node, Mapping):
        found: dict[str, Any] = {}
        for key, value in node.pairs:
            name = key.text if isinstance(key, Scalar) else ""
            if name in found or not name:
                raise SchemaError("input_schema", f"a key twice, or none: {name!r}", "keep one of them")
            found[name] = _plain(value)
        return found
    raise SchemaError("input_schema", "it cannot be read", "write a mapping")
