"""A rule as it stands in a joined policy: what it matches, what it says, and who wrote it where."""

from __future__ import annotations

from tidegate.model.closed import Closed, ClosedNumber
from tidegate.model.value import Value
from tidegate.model.verdict import Phase, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Alternative: TypeAlias = tuple[str, tuple[str, ...], tuple[str, ...]]
    Union: TypeAlias = tuple[Alternative, ...]
    Requests: TypeAlias = tuple[Union, ...]


class Shape(Closed):
    """What kind of host part a rule has (POL-1)."""

    EXACT = "exact"  # api.example.com
    LITERAL = "literal"  # 1.2.3.4 or [2600:beef::1]
    ONE_LABEL = "one-label"  # *.example.com: exactly one label in front
    DEEP = "deep"  # **.example.com: one or more labels in front
    ANY = "any"  # * or **: every name and every public address


class Origin(ClosedNumber):
    """Who a rule is from. Among equals the higher number wins, and only WRITTEN admits private addresses."""

    PRESET = 0
    HARNESS = 1
    REMEMBERED = 2
    WRITTEN = 3


class Layer(ClosedNumber):
    """Which layer of POL-8 a rule came from; the one nearest the command line is the highest."""

    ADMINISTRATOR = 0
    BUILTIN = 1
    USER = 2
    SERVER = 3
    FOLDER = 4
    COMMAND_LINE = 5
    REMEMBERED = 6
    HARNESS = 7


PLAIN, REGISTRY, GIT = "", "registry", "git"
"""What an alternative is of: methods and paths of a rule, what only reads of a registry, or `git` of a rule (INS-7)."""


class RuleLimits(Value):
    """Optional bounds of one rule (GAT-6, INS-6). None means no bound.

    `requests` says which requests pass: those that every union in it lets pass. A union lets pass what one of its
    alternatives does: (kind, methods, paths), in which no methods or no paths mean any. () lets all pass.
    """

    bytes_up: int | None = None
    connections_per_minute: int | None = None
    requests: Requests = ()


NO_LIMITS = RuleLimits()


def only(methods: tuple[str, ...] = (), paths: tuple[str, ...] = (), kind: str = PLAIN) -> Requests:
    """Return what lets pass these methods on these paths, and nothing else."""
    return (((kind, methods, paths),),) if methods or paths else ()


class Rule(Value):
    """One rule.

    `text` is its canonical spelling, `host[:port]`; `key` is the part that is compared: the name, the suffix
    behind `*.` or `**.`, the literal's text without brackets, or '' for `*`. `port` is None for any port.
    `name` groups rules for people (`package-registries`, `policy`, `command-line`); `source` says where this
    one stands (`tidegate.yaml:3:9`, `preset pypi`, `--allow`).
    """

    text: str
    shape: Shape
    key: str
    port: int | None
    verdict: Verdict
    phase: Phase
    name: str
    source: str
    origin: Origin = Origin.WRITTEN
    layer: Layer = Layer.COMMAND_LINE
    limits: RuleLimits = NO_LIMITS
