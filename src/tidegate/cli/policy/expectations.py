"""The file of `tidegate policy test`: expected verdicts, in YAML or JSON.

    policy: policy.yaml            # beside this file; `--policy` stands in for it
    expect:
      - allow: [pypi.org, files.pythonhosted.org:443]
      - ask: github.com            # one destination or a list; the port is 443 when absent
      - deny: evil.example
        phase: install             # runtime when absent

Read by the same strict reader as policies: all errors at once, with their places.
"""

from __future__ import annotations

from typing import Final

from tidegate.cli.policy.options import DEFAULT_PORT
from tidegate.model.destination import Destination, PortError, parse_authority
from tidegate.model.host import HostError
from tidegate.model.value import Value
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.document import parse_document
from tidegate.policy.expect import Expectation
from tidegate.policy.nodes import Node, Scalar, Sequence
from tidegate.policy.positions import Problems
from tidegate.policy.reading import Reader

_VERDICTS: Final = {verdict.value: verdict for verdict in Verdict}
_PHASES: Final = {phase.value: phase for phase in Phase}
_EXAMPLE: Final = "write 'expect: [{allow: pypi.org}]'"


class ExpectationFile(Value):
    """What such a file says: the policy it names ('' for none) and what it expects."""

    policy: str
    expectations: tuple[Expectation, ...]


def read_expectations(data: bytes, filename: str) -> ExpectationFile:
    """Return what a file of expectations says.

    Raises:
        PolicyErrors: with everything that is wrong with it.
    """
    problems = Problems(filename)
    reading = _Reading(problems)
    with problems:
        root = parse_document(data, problems)
        if root is not None:
            reading.root(root)
        if not problems and not reading.found:
            problems.add(0, 0, "the file expects nothing", "", _EXAMPLE)
    return ExpectationFile(reading.policy, tuple(reading.found))


class _Reading:
    def __init__(self, problems: Problems) -> None:
        self._read = Reader(problems)
        self.policy = ""
        self.found: list[Expectation] = []

    def root(self, node: Node) -> None:
        for key, _, value in self._read.pairs(node, "the file", ("policy", "expect"), None, _EXAMPLE):
            if key == "policy":
                self.policy = self._read.text(value, "'policy'") or ""
            else:
                for item in self._read.items(value, "'expect'", _EXAMPLE):
                    self._entry(item)

    def _entry(self, node: Node) -> None:
        phase = Phase.RUNTIME
        targets: list[tuple[Verdict, Scalar]] = []
        before = self._read.problems.count
        for key, _, value in self._read.pairs(node, "an entry of 'expect'", (*_VERDICTS, "phase"), None, _EXAMPLE):
            if key == "phase":
                phase = _PHASES.get(self._read.word(value, "'phase'", _PHASES) or "", phase)
                continue
            for item in value.items if isinstance(value, Sequence) else [value]:
                if self._read.text(item, f"'{key}'", "write a destination such as pypi.org:443") is not None:
                    assert isinstance(item, Scalar)
                    targets.append((_VERDICTS[key], item))
        if not targets and self._read.problems.count == before:
            self._read.wrong(node, "an entry that names no destination", "", _EXAMPLE)
        for verdict, item in targets:
            destination = self._destination(item)
            if destination is not None:
                self.found.append(Expectation(destination, verdict, phase, self._read.source(item.mark)))

    def _destination(self, item: Scalar) -> Destination | None:
        try:
            return parse_authority(item.text, DEFAULT_PORT)
        except (HostError, PortError) as error:
            self._read.wrong(item, f"not a destination ({error.what})", item.text, "write HOST or HOST:PORT")
            return None
