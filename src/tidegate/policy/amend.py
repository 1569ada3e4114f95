"""A policy's text with entries added, marked or taken out, and everything else as its writer left it (JRN-7).

Rules of the file:

* The text is edited where it has to be and nowhere else: comments, order, quotes and blank lines stay.
* A new entry stands behind the last one of its list, in the form that the list has: a line of its own, or in the
  brackets. A list, a phase or `network` that is not there is made, at the end of what it belongs to.
* Nothing is believed: the text that comes out is read again by the loader, and where it does not say exactly what was
  there, less what was taken out, and what was added, there is no result. So an anchor shared by two lists, or a form
  that nobody thought of, ends in an error and not in another policy.

Marks of PyYAML end a block collection where the next token begins, behind comments; so ends are those of leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from tidegate.model.rule import Layer
from tidegate.policy.loader import load_policy
from tidegate.policy.positions import PolicyErrors
from tidegate.policy.written import Item, document, inline, item_line, network_lines, quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from tidegate.policy.layers import PolicyLayer

    Edit = tuple[int, int, str]
    Additions = Mapping[str, Mapping[str, Sequence[Item]]]

UNUSED = "not used by these tasks"
_SOURCE = 7  # of a row
_STEP = 2  # columns, for what is new
_COLLECTIONS = (yaml.MappingNode, yaml.SequenceNode)


class AmendError(ValueError):
    """The text has a form that is not edited. `what` says so in one clause."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


class Entry:
    """One entry of a list as it stands: what it names, in which phase, and where (line and column, from 1)."""

    __slots__ = ("at", "phase", "text")

    def __init__(self, node: Any, phase: str) -> None:
        self.phase = phase
        self.text = str(_host_of(node).value)
        self.at = _place(node)


class Text:
    """The text of a policy that loads, ready to be edited.

    Raises:
        AmendError: where it is not edited at all.
    """

    def __init__(self, data: bytes, filename: str) -> None:
        self.layer = load_policy(data, filename, Layer.COMMAND_LINE)
        self._filename = filename
        self.text = data.decode("utf-8")
        self._starts = [0]
        for line in self.text.split("\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)
        loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
        self._root: Any = yaml.compose(self.text, Loader=loader)
        self._edits: list[Edit] = []

    def entries(self) -> list[Entry]:
        """Return the entries of `allow` and `ask`, in the order of the text."""
        network = _under(self._root, "network")
        found = []
        for phase, lists in network.value if isinstance(network, yaml.MappingNode) else ():
            for verdict, items in lists.value:
                if verdict.value != "deny":
                    found += [Entry(node, phase.value) for node in items.value]
        return found

    def amended(
        self, additions: Additions, unused: Collection[tuple[int, int]], *, prune: bool
    ) -> tuple[str, list[str]]:
        """Return the text with these entries added, those at `unused` marked, or taken out where `prune`.

        The second is the texts of unused entries that no mark could be put at: there is no place for a comment.

        Raises:
            AmendError: where what came out would not be what was meant.
        """
        self._edits = []
        unmarked: list[str] = []
        left = {phase: {verdict: list(items) for verdict, items in lists.items()} for phase, lists in additions.items()}
        network = _under(self._root, "network")
        if isinstance(network, yaml.MappingNode):
            for phase, lists in network.value:
                for verdict, items in lists.value:
                    wanted = left.get(phase.value, {}).pop(verdict.value, [])
                    marks = unused if verdict.value != "deny" else ()
                    unmarked += self._list(verdict, items, wanted, marks, prune=prune)
                self._lists_missing(lists, left.pop(phase.value, {}))
            self._phases_missing(network, left)
        else:
            self._network_missing(left)
        text = self._applied()
        self._check(text, additions, unused if prune else ())
        return text, unmarked

    # A list that is there.

    def _list(
        self, key: Any, items: Any, wanted: list[Item], unused: Collection[tuple[int, int]], *, prune: bool
    ) -> list[str]:
        gone = [node for node in items.value if prune and _place(node) in unused]
        kept = [node for node in items.value if node not in gone]
        if items.flow_style:
            self._flow_list(items, gone, kept, [inline(item) for item in wanted])
            return [str(_host_of(node).value) for node in kept if _place(node) in unused]
        unmarked = []
        for node in kept:
            unmarked += self._mark(node, unused=_place(node) in unused)
        indent = " " * items.start_mark.column
        lines = "".join(f"{indent}{item_line(item)}\n" for item in wanted)
        for node in gone:
            self._edits.append((self._starts[node.start_mark.line], self._starts[_last_line(node) + 1], ""))
        if lines:
            self._insert_line(_last_line(items.value[-1]) + 1, lines)
        elif not kept:
            self._empty(key)
        return unmarked

    def _empty(self, key: Any) -> None:
        colon = self.text.find(":", self._index(key.end_mark))
        self._edits.append((colon + 1, colon + 1, " []"))

    def _flow_list(self, items: Any, gone: list[Any], kept: list[Any], wanted: list[str]) -> None:
        nodes = items.value
        for at, node in enumerate(nodes):
            if node not in gone:
                continue
            if any(later in kept for later in nodes[at + 1 :]):
                self._edits.append((self._index(node.start_mark), self._index(nodes[at + 1].start_mark), ""))
            elif kept:
                self._edits.append((self._index(kept[-1].end_mark), self._index(nodes[-1].end_mark), ""))
                break
            else:
                self._edits.append((self._index(nodes[0].start_mark), self._index(nodes[-1].end_mark), ""))
                break
        if wanted:
            last = kept[-1] if kept else None
            at = self._index(last.end_mark) if last is not None else self._index(items.start_mark) + 1
            self._edits.append((at, at, (", " if kept else "") + ", ".join(wanted)))

    def _mark(self, node: Any, *, unused: bool) -> list[str]:
        line = node.start_mark.line
        ends = [leaf.end_mark.column for leaf in _leaves(node) if leaf.end_mark.line == line]
        end = self._starts[line + 1] - 1
        rest = self.text[self._starts[line] + max(ends) : end] if ends else "?"
        bare = rest.strip()
        if bare and not bare.startswith("#"):
            return [str(_host_of(node).value)] if unused else []
        was = bare.endswith(UNUSED)
        if was == unused:
            return []
        start = self._starts[line] + max(ends)
        if unused:
            self._edits.append((start, end, f"{rest.rstrip()}; {UNUSED}" if bare else f"  # {UNUSED}"))
        else:
            less = rest.rstrip().removesuffix(UNUSED).rstrip().removesuffix(";").rstrip()
            self._edits.append((start, end, "" if less.strip() == "#" else less))
        return []

    # What is not there.

    def _lists_missing(self, lists: Any, wanted: Mapping[str, Sequence[Item]]) -> None:
        for verdict, items in wanted.items():
            if not items:
                continue
            if lists.flow_style:
                self._flow_pair(lists, f"{quoted(verdict)}: [{', '.join(map(inline, items))}]")
                continue
            indent = " " * lists.start_mark.column
            lines = [f"{indent}{verdict}:"] + [f"{indent}{' ' * _STEP}{item_line(item)}" for item in items]
            self._insert_line(_last_line(lists) + 1, "\n".join(lines) + "\n")

    def _phases_missing(self, network: Any, wanted: Additions) -> None:
        for phase, lists in wanted.items():
            if not any(lists.values()):
                continue
            if network.flow_style:
                inner = ", ".join(
                    f"{quoted(verdict)}: [{', '.join(map(inline, items))}]" for verdict, items in lists.items()
                )
                self._flow_pair(network, f"{quoted(phase)}: {{{inner}}}")
                continue
            indent = " " * (network.start_mark.column - _STEP)
            lines = [indent + line for line in network_lines({phase: lists})[1:]]
            self._insert_line(_last_line(network) + 1, "\n".join(lines) + "\n")

    def _network_missing(self, wanted: Additions) -> None:
        lines = network_lines(wanted)
        if not lines:
            return
        if self._root.flow_style:
            raise AmendError("it has no 'network', and stands in brackets")
        self._insert_line(_last_line(self._root) + 1, "\n".join(lines) + "\n")

    def _flow_pair(self, mapping: Any, text: str) -> None:
        if mapping.value:
            at = self._index(mapping.value[-1][1].end_mark)
            self._edits.append((at, at, f", {text}"))
        else:
            at = self._index(mapping.start_mark) + 1
            self._edits.append((at, at, text))

    # Text.

    def _index(self, mark: Any) -> int:
        return int(self._starts[mark.line] + mark.column)

    def _insert_line(self, line: int, text: str) -> None:
        at = self._starts[line] if line < len(self._starts) else len(self.text)
        if at > len(self.text):  # the last line has no end of its own
            at, text = len(self.text), "\n" + text
        self._edits.append((at, at, text))

    def _applied(self) -> str:
        text = self.text
        # From the back; of two at one place the later one was meant to stand behind.
        for _order, (start, end, new) in sorted(
            enumerate(self._edits), key=lambda one: (one[1][0], one[1][1], one[0]), reverse=True
        ):
            text = text[:start] + new + text[end:]
        return text

    def _check(self, text: str, additions: Additions, gone: Collection[tuple[int, int]]) -> None:
        try:
            after = load_policy(text.encode(), self._filename, Layer.COMMAND_LINE)
        except PolicyErrors as error:
            raise AmendError(f"entries cannot be put into its form ({error.errors[0].what})") from None
        wanted = _meaning(self.layer, gone)
        if any(items for lists in additions.values() for items in lists.values()):
            wanted += _meaning(load_policy(document(additions).encode(), "added", Layer.COMMAND_LINE), ())
        if sorted(_meaning(after, ())) != sorted(wanted):
            raise AmendError("its form makes one entry stand for several (an anchor, perhaps)")


def _meaning(layer: PolicyLayer, gone: Collection[tuple[int, int]]) -> list[str]:
    """Return what a layer lets through and asks for, without its places."""
    found = [repr((*row[:_SOURCE], *row[_SOURCE + 1 :])) for row in layer.rows if _at(row[_SOURCE]) not in gone]
    return found + [repr((use.name, use.verdict, use.phase)) for use in layer.presets if _at(use.source) not in gone]


def _at(source: object) -> tuple[int, int]:
    _name, line, column = str(source).rsplit(":", 2)
    return int(line), int(column)


def _under(root: Any, key: str) -> Any:
    return next((value for name, value in root.value if name.value == key), None)


def _host_of(node: Any) -> Any:
    if isinstance(node, yaml.MappingNode):
        return next(value for key, value in node.value if key.value == "host")
    return node


def _place(node: Any) -> tuple[int, int]:
    leaf = _host_of(node)
    return leaf.start_mark.line + 1, leaf.start_mark.column + 1


def _leaves(node: Any) -> list[Any]:
    """Return the nodes below that end where their marks say."""
    if not isinstance(node, _COLLECTIONS) or node.flow_style:
        return [node]
    if isinstance(node, yaml.MappingNode):
        return [leaf for key, value in node.value for leaf in (*_leaves(key), *_leaves(value))]
    return [leaf for value in node.value for leaf in _leaves(value)]


def _last_line(node: Any) -> int:
    return int(max(leaf.end_mark.line for leaf in _leaves(node)))
