"""What became of a task as a comment on its issue in Jira: one, when the task has ended.

A task names its issue with `--issue KEY`. Whatever it did, it causes one comment and no more: how it ended, what was
refused (folded by host and reason, at most `HOSTS` of them), how often a person was asked. A comment says the number
and hash of the line that it stands for, and is looked for before it is made, so a repetition finds it there.

Rules of the file: text that a task had a say in is never markup. Jira's cloud takes a document (ADF) in which it is
the text of a code block. A server of one's own takes wiki markup, and of such text only the letters of `_PLAIN` stay.
"""

from __future__ import annotations

import http.client
import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from tidegate.journal.segments import backwards, segments
from tidegate.journal.sinks.record import TEST
from tidegate.journal.sinks.sink import REFUSED, TAKEN, Outcome, judged
from tidegate.model.issue import is_issue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.journal.sinks.record import Record
    from tidegate.journal.sinks.target import Target

ENDED: Final = "task.ended"
HOSTS: Final = 20
CLOUD: Final = ".atlassian.net"
LINES: Final = 200_000  # of the log that are looked at for one task
_COMMENTS: Final = 1 << 22  # bytes of an issue's newest comments
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 .:_-,;")
_MOST_KINDS = 10_000  # hosts and reasons that are counted
_LONGEST = 120


class JiraSink:
    """See the head of the file. `folder` is the log's; a target at `*.atlassian.net` is the cloud's."""

    def __init__(self, target: Target, headers: dict[str, str], folder: str, *, cloud: bool | None = None) -> None:
        self._target = target
        self._folder = folder
        self._cloud = target.host.endswith(CLOUD) if cloud is None else cloud
        root = f"{target.path.rstrip('/')}/rest/api/{3 if self._cloud else 2}"
        self._base = f"{root}/issue"
        self._myself = f"{root}/myself"
        self._headers = headers | {"Accept": "application/json", "User-Agent": "tidegate"}

    def send(self, batch: Sequence[Record]) -> Outcome:
        """Comment on the issue of each task that ended; of a test, which has no issue, ask who signs in."""
        if [record.kind for record in batch] == [TEST]:
            return self._asked()
        refused: dict[int, str] = {}
        idle = 0
        for place, record in enumerate(batch):
            issue, lines = told(self._folder, record) if record.kind == ENDED else ("", [])
            if issue is None:
                refused[place] = "the beginning of its task, which names the issue, is no more in the log"
                continue
            if not is_issue(issue):
                idle += 1
                continue
            outcome = self._comment(issue, record, lines)
            if outcome.state == REFUSED:
                refused[place] = outcome.why
            elif outcome.state != TAKEN:
                return outcome
        return Outcome(TAKEN, refused=refused, idle=idle)

    def _asked(self) -> Outcome:
        outcome = judged(self._target.ask("GET", self._myself, None, self._headers, keep=0))
        if outcome.state != TAKEN:
            return outcome
        return Outcome(TAKEN, f"{outcome.why} to who signs in; there is no issue to comment on")

    def _comment(self, issue: str, record: Record, lines: list[str]) -> Outcome:
        place = f"{self._base}/{issue}/comment"
        mark = f"tidegate {record.id}"
        reply = self._target.ask("GET", f"{place}?orderBy=-created&maxResults=50", None, self._headers, keep=_COMMENTS)
        if reply.status == http.client.OK and mark.encode() in reply.body:
            return Outcome(TAKEN)
        outcome = _judged(reply.status, judged(reply))
        if outcome.state != TAKEN:
            return outcome
        body = json.dumps({"body": _document(lines, mark) if self._cloud else _wiki(lines, mark)}).encode("ascii")
        headers = self._headers | {"Content-Type": "application/json"}
        reply = self._target.post(body, headers, path=place)
        return _judged(reply.status, judged(reply))

    def abort(self) -> None:
        """End what is on its way."""
        self._target.abort()

    def close(self) -> None:
        """Nothing stays open."""


def _judged(status: int, outcome: Outcome) -> Outcome:
    # There is no such issue, or none that this user sees: that of the next task may be another.
    return Outcome(REFUSED, outcome.why) if status == http.client.NOT_FOUND else outcome


def told(folder: str, end: Record) -> tuple[str | None, list[str]]:
    """Return the issue of a task that ended, and what there is to say of it.

    The issue is '' where the task has none, and None where its beginning is not among the last `LINES`.

    Raises:
        OSError: when the log cannot be read.
    """
    needle = f'"task":{json.dumps(end.task)}'.encode("ascii")
    refused: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    left = LINES
    for path in reversed(segments(folder)):
        for raw in backwards(path):
            left -= 1
            if left < 0:
                return None, []
            if needle not in raw:
                continue
            line = _line(raw)
            if line.get("task") != end.task or not isinstance(line.get("seq"), int) or line["seq"] > end.seq:
                continue
            kind = str(line.get("type", ""))
            if kind == "task.created":
                return str(line.get("issue", "")), _lines(line, end, refused, kinds)
            kinds[kind] += 1
            if kind == "net.blocked":
                what = f"{line.get('host', '')} {line.get('reason', '')}"
                what = what if what in refused or len(refused) < _MOST_KINDS else "others"
                refused[what] += int(line.get("count", 1))
    return None, []


def _line(raw: bytes) -> dict[str, Any]:
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return line if isinstance(line, dict) else {}


def _lines(created: dict[str, Any], end: Record, refused: Counter[str], kinds: Counter[str]) -> list[str]:
    lines = [
        f"task {end.task} has ended: {end.fields.get('outcome', '')}",
        f"began {created.get('at', '')}, ended {end.at}; hold {created.get('hold', '')}",
        f"refused: {sum(refused.values())} connections to {len(refused)} places",
    ]
    lines += [f"  {count} x {what}" for what, count in refused.most_common(HOSTS)]
    if len(refused) > HOSTS:
        lines.append(f"  and {len(refused) - HOSTS} more")
    asked = kinds["question.opened"]
    if asked:
        lines.append(f"questions: {asked}")
    if kinds["open.network"]:
        lines.append("a command of it had an open network")
    return lines


def _document(lines: list[str], mark: str) -> dict[str, Any]:
    """Return a comment as an Atlassian document: all of it is the text of one code block."""
    text = "\n".join(_printable(line) for line in (*lines, mark))
    block = {"type": "codeBlock", "attrs": {"language": "text"}, "content": [{"type": "text", "text": text}]}
    return {"type": "doc", "version": 1, "content": [block]}


def _wiki(lines: list[str], mark: str) -> str:
    """Return a comment in wiki markup, of which there is none but the block around it."""
    plain = "\n".join("".join(one if one in _PLAIN else "?" for one in line[:_LONGEST]) for line in (*lines, mark))
    return f"{{noformat}}\n{plain}\n{{noformat}}"


def _printable(text: str) -> str:
    return "".join(one if " " <= one <= "~" else "?" for one in text[:_LONGEST])
