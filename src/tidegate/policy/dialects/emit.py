"""What a file became, as a policy in our own text (POL-15): YAML that `--policy` loads.

Every rule stands on a line of its own, so that the rule our loader reads there can be led back to the place in the
source that it is from. Comments are ASCII: a person sees what the machine reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.model.verdict import Verdict
from tidegate.policy.dialects.imported import BOTH, DROPPED, NARROWER
from tidegate.policy.positions import on_screen
from tidegate.policy.written import quoted

if TYPE_CHECKING:
    from tidegate.policy.dialects.imported import Imported, Line

MAX_COMMENTS = 50
_VERDICTS = (Verdict.ALLOW, Verdict.ASK, Verdict.DENY)


def policy_text(imported: Imported) -> tuple[str, dict[int, Line]]:
    """Return the text, and which rule stands on which of its lines (counted from 1)."""
    name = _comment(on_screen(imported.filename, 200))
    lines = [
        f"# {_comment(imported.summary)}.",
        f"# Written by: tidegate policy import --dialect {imported.dialect}.",
        f"# Behind each rule: its line and column in {name}.",
    ]
    lines += [f"# {_comment(note)}." for note in imported.notes]
    less = [entry for entry in imported.entries if entry.how in {NARROWER, DROPPED}]
    lines += [f"# {_comment(str(entry))}" for entry in less[:MAX_COMMENTS]]
    if len(less) > MAX_COMMENTS:
        lines.append(f"# and {len(less) - MAX_COMMENTS} more")
    lines += [f"{key}: {value}" for key, value in imported.settings]
    places: dict[int, Line] = {}
    lines.append("network:")
    for phase in BOTH:
        found = [line for line in imported.lines if line.phase is phase]
        lines.append(f"  {phase.value}:" if found else f"  {phase.value}: {{}}")
        for verdict in _VERDICTS:
            rules = [line for line in found if line.verdict is verdict]
            if rules:
                lines.append(f"    {verdict.value}:")
            for rule in rules:
                host = quoted(rule.text)
                item = f"{{host: {host}, methods: [{', '.join(rule.methods)}]}}" if rule.methods else host
                lines.append(f"      - {item}  # {rule.line}:{rule.column}")
                places[len(lines)] = rule
    return "\n".join(lines) + "\n", places


def _comment(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode("ascii")
