"""Decisions a second with ten, a thousand and a hundred thousand rules, and how long 10,000 rules take to load.

The rules are the mix a large company list has: exact names with a port, `*.name`, `**.name`, addresses. The
destinations are drawn over the whole list, shuffled, a third of them matched by nothing, and the same number for
each size, so that caches help a long list no more than a short one. Only `policy.decide` is timed.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

from bench.processes import BenchError

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.context import Context
    from tidegate.model.decision import Decision
    from tidegate.model.destination import Destination
    from tidegate.model.verdict import Phase
    from tidegate.policy.policy import Policy
    from tidegate.policy.rows import Row

    Decide = Callable[[Policy, Destination, Phase], Decision]

SIZES = (10, 1_000, 100_000)
LOADED = 10_000
_DESTINATIONS = 3000
_PEER = "tidegate"


def measure_decisions(context: Context) -> None:
    """Time `decide` at each size, the sizes interleaved."""
    try:
        from tidegate.model.verdict import Phase
        from tidegate.policy.decide import decide
        from tidegate.policy.policy import make_policy
    except ImportError as error:
        raise BenchError(f"the policy cannot be imported: {error}") from None
    context.say("decisions")
    worlds = []
    for size in SIZES:
        policy = make_policy(_rows(size))
        worlds.append((size, policy, _destinations(size)))
        _seconds(policy, worlds[-1][2], decide, Phase.RUNTIME)  # rules become objects when first met
    for _ in range(context.rounds):
        for size, policy, destinations in worlds:
            seconds = _seconds(policy, destinations, decide, Phase.RUNTIME)
            measure = context.results.measure(f"decide_{size}", f"decisions, {size:,} rules", "1/s")
            measure.of(_PEER).add(len(destinations) / seconds, ns=seconds / len(destinations) * 1e9)
    rows = _rows(LOADED)
    load = context.results.measure("load_10000", "10,000 rules made a policy", "ms", more_is_better=False)
    for _ in range(context.rounds):
        began = time.perf_counter()
        make_policy(rows)
        load.of(_PEER).add((time.perf_counter() - began) * 1000)


def _seconds(policy: Policy, destinations: list[Destination], decide: Decide, phase: Phase) -> float:
    """Return the best of five passes: what is measured is the code, not who else wanted the processor."""
    passes = []
    for _ in range(5):
        began = time.perf_counter()
        for destination in destinations:
            decide(policy, destination, phase)
        passes.append(time.perf_counter() - began)
    return min(passes)


def _text(number: int) -> str:
    kind = number % 10
    if kind < 6:
        return f"host{number}.example-{number % 997}.com:443"
    if kind < 8:
        return f"*.wild{number}.example.net"
    if kind < 9:
        return f"**.deep{number}.example.org:443"
    return f"93.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}:443"


def _asked(number: int) -> str:
    """Return a destination that rule `number` matches."""
    kind = number % 10
    if kind < 6 or kind == 9:
        return _text(number).removesuffix(":443") + ":443"
    if kind < 8:
        return f"a.wild{number}.example.net:443"
    return f"a.b.c.deep{number}.example.org:443"


def _rows(size: int) -> list[Row]:
    from tidegate.model.rule import Layer, Origin
    from tidegate.model.verdict import Phase, Verdict
    from tidegate.policy.rows import rule_row

    where = (Verdict.ALLOW, Phase.RUNTIME, "policy", "bench.yaml:1:1", Origin.WRITTEN, Layer.COMMAND_LINE)
    return [rule_row(_text(number), *where) for number in range(size)]


def _destinations(size: int) -> list[Destination]:
    from tidegate.model.destination import parse_authority

    chance = random.Random(2)
    found = []
    for number in range(_DESTINATIONS):
        matched = number % 3 < 2
        text = _asked(chance.randrange(size)) if matched else f"x{chance.randrange(10**9)}.a.elsewhere.example:443"
        found.append(parse_authority(text))
    chance.shuffle(found)
    return found
