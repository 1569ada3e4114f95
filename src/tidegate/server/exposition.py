"""Metrics as text: Prometheus' format 0.0.4 and OpenMetrics 1.0 (JRN-6). Pure.

A family has one name, one kind and one line of help; each sample has its labels in their order. A counter's samples end
in `_total`; its family is called so in the older format and without it in OpenMetrics, which also ends with `# EOF`.
See "Exposition formats" of Prometheus, and OpenMetrics 1.0, section 6.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tidegate.model.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable

PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
COUNTER, GAUGE = "counter", "gauge"
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_WANTED = re.compile(r"(?:^|,)\s*application/openmetrics-text\s*(?:;([^,]*))?")

Sample = tuple[dict[str, str], int | float]


class Family(Value):
    """One metric. `name` is without `_total`."""

    name: str
    kind: str
    help: str
    samples: tuple[Sample, ...]


def gauge(name: str, help: str, value: float) -> Family:  # noqa: A002  what the format calls it
    """Return a metric of one sample without labels."""
    return Family(name, GAUGE, help, (({}, value),))


def content_type(accept: str) -> str:
    """Return the format that a scraper wants: the newer where it names it, whatever its weight but 0."""
    found = _WANTED.search(accept.lower())
    return PROMETHEUS if found is None or re.search(r"q=0(\.0*)?\s*$", found[1] or "") else OPENMETRICS


def text(families: Iterable[Family], kind: str) -> bytes:
    """Return them in a format, which is one of the two content types."""
    newer = kind == OPENMETRICS
    lines: list[str] = []
    for family in families:
        assert _NAME.fullmatch(family.name), family.name
        sample = f"{family.name}_total" if family.kind == COUNTER else family.name
        named = family.name if newer else sample
        lines += (f"# HELP {named} {_escaped(family.help, quoted=newer)}", f"# TYPE {named} {family.kind}")
        for labels, value in family.samples:
            inner = ",".join(f'{name}="{_escaped(one, quoted=True)}"' for name, one in labels.items())
            lines.append(f"{sample}{{{inner}}} {_number(value)}" if inner else f"{sample} {_number(value)}")
    return "".join(f"{line}\n" for line in (*lines, *(("# EOF",) if newer else ()))).encode()


def _escaped(value: str, *, quoted: bool) -> str:
    shown = value.replace("\\", "\\\\").replace("\n", "\\n")
    return shown.replace('"', '\\"') if quoted else shown


def _number(value: float) -> str:
    return repr(value)
