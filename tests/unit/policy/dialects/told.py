"""What the tests of dialects share: a file read, what it became, and the comparison with an oracle.

An oracle is written from the product's page alone, and decides a host and a port by itself. `holds_to` asks both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import strategies as st

from tidegate.model.destination import parse_authority
from tidegate.model.rule import Layer
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.decide import decide
from tidegate.policy.dialects.imported import DROPPED, EXACTLY, NARROWER, Imported, Wanted
from tidegate.policy.dialects.reader import layer_of, read_dialect
from tidegate.policy.layers import join
from tidegate.policy.positions import PolicyErrors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tidegate.policy.policy import Policy

SUFFIXES = frozenset({"com", "org", "test", "co.uk", "uk", "io", "localhost"})
NAMES = ("a.test", "b.a.test", "c.b.a.test", "x.org", "b.x.org", "ab.test", "b-a.test", "d.c.b.a.test")
PORTS = (80, 443, 8080)
PLACES = tuple(f"{host}:{port}" for host in (*NAMES, "8.8.8.8", "9.9.9.9") for port in PORTS)

names = st.sampled_from(NAMES)
ports = st.sampled_from(("", *(f":{port}" for port in PORTS)))


def took(text: str, name: str = "", *, select: str = "", folder: str = "/here", filename: str = "file") -> Imported:
    """Return what a file became; it must be recognised, or its dialect named."""
    found = read_dialect(text.encode(), filename, Wanted(select, folder), lambda one: one in SUFFIXES, name)
    assert found is not None
    return found


def refused(text: str, name: str = "") -> list[str]:
    """Return the errors of a file, without its name."""
    with pytest.raises(PolicyErrors) as caught:
        took(text, name)
    return [line.removeprefix("file:") for line in caught.value.lines()]


def policy_of(imported: Imported) -> Policy:
    """Return the policy that `--policy` runs under."""
    return join(layer_of(imported, Layer.COMMAND_LINE))


def became(imported: Imported) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return how each entry was kept and what it became, by its text."""
    return {entry.text: (entry.how, entry.became) for entry in imported.entries}


def allows(policy: Policy, place: str, phase: Phase = Phase.RUNTIME) -> bool:
    """Whether a policy allows `host:port`."""
    return decide(policy, parse_authority(place), phase).verdict is Verdict.ALLOW


def allowed(imported: Imported, places: Iterable[str] = PLACES, phase: Phase = Phase.RUNTIME) -> set[str]:
    """Return which of the places the policy of a file allows."""
    policy = policy_of(imported)
    return {place for place in places if allows(policy, place, phase)}


def holds_to(imported: Imported, oracle: Callable[[str, int], bool], phase: Phase = Phase.RUNTIME) -> None:
    """Assert that nothing passes which the product refuses; and what it allows, where every entry is kept exactly."""
    passes = allowed(imported, PLACES, phase)
    exactly = not any(entry.how in {NARROWER, DROPPED} for entry in imported.entries)
    for place in PLACES:
        host, _, port = place.rpartition(":")
        wanted = oracle(host, int(port))
        if place in passes:
            assert wanted, f"{place} passes, and the product refuses it"
        elif wanted:
            assert not exactly, f"{place} is refused, and every entry is said to be kept exactly"


def is_below(host: str, name: str, depth: int = 0) -> bool:
    """Whether a host is below a name: at any depth, or at exactly one."""
    labels, base = host.split("."), name.split(".")
    more = len(labels) - len(base)
    return more > 0 and labels[more:] == base and (not depth or more == depth) and not host[-1:].isdigit()


__all__ = [
    "EXACTLY", "NAMES", "PLACES", "PORTS", "allowed", "allows", "became", "holds_to", "is_below", "names", "policy_of",
    "ports", "refused", "took",
]  # fmt: skip
