"""The text of a harness file -> a Harness, or every error in it at once (POL-12).

    name: my-agent
    command: my-agent
    proxy_aware: true
    model_api: api.example.com:443
    network:
      requires:
        - api.example.com:443
        - {host: telemetry.example.com:443, verified: true, why: crash reports, source: "https://example.com/docs"}

Rules of the file: a host is a rule of POL-1, with the errors of POL-2; what is not marked `verified` is unverified; the
model API must be among the hosts, so that nothing is reached that the list does not show. Nothing is guessed.

It reads no file, and says nothing of who may use one.
"""

from __future__ import annotations

import re
from typing import Final

from tidegate.policy.document import parse_document
from tidegate.policy.harnesses import Harness, HarnessHost
from tidegate.policy.nodes import Mapping, Node, Scalar, Sequence
from tidegate.policy.positions import Problems
from tidegate.policy.reading import Reader
from tidegate.policy.rules import RuleError, parse_rule

HARNESS_KEYS: Final = ("name", "command", "about", "proxy_aware", "model_api", "network")
HOST_KEYS: Final = ("host", "verified", "why", "source", "only_key")

_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
_COMMAND = re.compile(r"[A-Za-z0-9._+-]{1,64}")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_MAX_RULE: Final = 600  # as in loader.py
_MAX_TEXT: Final = 300
_HINTS: Final = {
    **dict.fromkeys(("hosts", "requires", "allow", "runtime"), "write 'network: {requires: [api.example.com:443]}'"),
    "commands": "write 'command', one file name",
}
_NETWORK_HINTS: Final = dict.fromkeys(("allow", "runtime", "hosts"), "write 'requires: [api.example.com:443]'")
_LIST: Final = "write '[api.example.com:443]', or [] for none"


def load_harness(text: bytes, filename: str) -> Harness:
    """Return the harness that a file's text declares. `filename` is only named, not opened.

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
            problems.add(0, 0, "the harness file is empty", "", "write at least 'name' and 'command'")
    return loader.harness()


class _Loader:
    """Walks one tree in the order of its text and gathers the fields of a harness."""

    def __init__(self, problems: Problems) -> None:
        self._read = Reader(problems)
        self._name = ""
        self._command = ""
        self._about = ""
        self._proxy_aware = True
        self._hosts: dict[str, HarnessHost] = {}
        self._model_api: dict[str, Node] = {}

    def harness(self) -> Harness:
        """Return what was gathered; only meaningful without problems."""
        hosts = tuple(self._hosts.values())
        return Harness(self._name, self._command, self._about, self._proxy_aware, hosts, tuple(self._model_api))

    def root(self, node: Node) -> None:
        """Read the top level."""
        read = self._read
        before = read.problems.count
        said = set()
        for key, _, value in read.pairs(node, "a harness file", HARNESS_KEYS, _HINTS, "write 'name: my-agent'"):
            said.add(key)
            if key == "name":
                advice = "write lower-case letters, digits and '-', beginning with a letter"
                self._name = self._matching(value, "'name'", _NAME, advice)
            elif key == "command":
                self._command = self._matching(value, "'command'", _COMMAND, "write the program's file name alone")
            elif key == "about":
                self._about = self._line(value, "'about'")
            elif key == "proxy_aware":
                self._proxy_aware = read.flag(value, "'proxy_aware'") is not False
            elif key == "model_api":
                for item in value.items if isinstance(value, Sequence) else [value]:
                    rule = self._rule(item, "'model_api'")
                    if rule:
                        self._model_api.setdefault(rule, item)
            else:
                for _, _, items in read.pairs(value, "'network'", ("requires",), _NETWORK_HINTS, _LIST):
                    for item in read.items(items, "'network.requires'", _LIST):
                        self._host(item)
        if isinstance(node, Mapping) and read.problems.count == before:
            self._whole(node, said)

    def _whole(self, node: Mapping, said: set[str]) -> None:
        """Note what is missing, or does not fit together, where every part is right by itself."""
        for key, example in (("name", "name: my-agent"), ("command", "command: my-agent")):
            if key not in said:
                self._read.wrong(node, f"a harness file needs '{key}'", "", f"write '{example}'")
        for rule, item in self._model_api.items():
            if rule not in self._hosts:
                advice = "add it to 'network: {requires: […]}', spelt the same"
                self._read.wrong(item, "the model API is not among the hosts", rule, advice)

    def _host(self, item: Node) -> None:
        read = self._read
        of = "an entry of 'network.requires'"
        if not isinstance(item, Mapping):
            self._add(item, of, HarnessHost(""))
            return
        found: Node | None = None
        about = HarnessHost("")
        before = read.problems.count
        for key, _, value in read.pairs(item, of, HOST_KEYS):
            if key == "host":
                found = value
            elif key == "verified":
                about = about.replace(verified=read.flag(value, "'verified'") is True)
            elif key == "only_key":
                advice = "write the variable that holds the key, such as ANTHROPIC_API_KEY"
                about = about.replace(only_key=self._matching(value, "'only_key'", _VARIABLE, advice))
            elif key == "why":
                about = about.replace(why=self._line(value, "'why'"))
            else:
                about = about.replace(reference=self._line(value, "'source'"))
        if found is not None:
            self._add(found, "'host'", about)
        elif read.problems.count == before:
            read.wrong(item, f"{of} names no host", "", "write '{host: api.example.com:443, verified: false}'")

    def _add(self, node: Node, of: str, about: HarnessHost) -> None:
        rule = self._rule(node, of)
        if not rule:
            return
        if rule in self._hosts:
            self._read.wrong(node, "a host twice", rule, "keep one of them")
            return
        self._hosts[rule] = about.replace(rule=rule, source=self._read.source(node.mark))

    def _rule(self, node: Node, of: str) -> str:
        """Return the canonical text of a rule; '' where it is none."""
        text = self._read.text(node, of, "write a host such as api.example.com:443")
        if text is None:
            return ""
        if text[:1] == "@":
            self._read.wrong(node, "a harness names hosts, no presets", text, "write the hosts out")
        elif len(text) > _MAX_RULE:
            self._read.wrong(node, "longer than any name can be", text, "write a host such as api.example.com:443")
        else:
            try:
                return parse_rule(text).text
            except RuleError as error:
                self._read.wrong(node, error.what, text, f"write {error.advice}")
        return ""

    def _matching(self, node: Node, of: str, pattern: re.Pattern[str], advice: str) -> str:
        text = self._read.text(node, of)
        if text is None:
            return ""
        if not pattern.fullmatch(text) or text in {".", ".."}:
            self._read.wrong(node, f"{of} has another form", text, advice)
            return ""
        return text

    def _line(self, node: Node, of: str) -> str:
        text = self._read.text(node, of) or ""
        if len(text) > _MAX_TEXT or not text.isprintable():
            shown = text if isinstance(node, Scalar) else ""
            self._read.wrong(node, f"{of} is no short line", shown, f"write one line of at most {_MAX_TEXT} characters")
            return ""
        return text
