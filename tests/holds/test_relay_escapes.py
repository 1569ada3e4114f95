"""The table of escapes, tried in containers whose gate is behind relays (HLD-4 (b) and (c), HLD-11, HLD-13).

The rows are those of `netns` without capture. What means something else in a container is named in
test_container_escapes.py, and what does behind a relay here.
"""

from __future__ import annotations

import functools
import os
import sys
import tempfile
from typing import TYPE_CHECKING, Any

import pytest

from tests.engines import IMAGE
from tests.holds.test_container_escapes import HOLES, MEANS_NOTHING, NOT_NEEDED, NOT_TRIED
from tidegate.doctor.escapes import rows as _rows  # noqa: F401 (fills the table)
from tidegate.doctor.escapes.attempt import attempt
from tidegate.doctor.escapes.outcome import OK, UNTESTABLE, results, strangers
from tidegate.doctor.escapes.table import NETNS, PASSED, TABLE
from tidegate.holds.container import vm_transport
from tidegate.holds.container.engine import Engine
from tidegate.holds.container.relay_image import CHANGES, default_image, make_tar

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("engines")]

NOT_CARRIED = {
    "its_own_published_port_by_the_gate": "nothing is published behind a relay, so nobody listens at that port",
    "a_service_with_a_rule": "by the proxy it is reached; without it, nothing stands for it on the task's own loopback",
}
TRIED = [name for name, row in TABLE.items() if row.is_for(NETNS, "root") and name not in NOT_TRIED]
WAYS = [("docker", "relay"), ("podman", "relay"), ("podman", "vm")]
"""docker's daemon is in another network than the trial, where the carrier would have to find the listener."""


@functools.cache
def answers(engine: str, transport: str) -> dict[str, Any]:
    """Try the whole table in one container."""
    one = Engine(engine)
    if not one.has_image(default_image()):
        one.import_image(default_image(), make_tar(), CHANGES)
    with tempfile.TemporaryDirectory(prefix="tidegate-relay-escapes-", dir="/var/tmp") as state:
        container = {"engine": engine, "image": IMAGE, "transport": transport, "state": state}
        return attempt(NETNS, rows=TRIED, container=container | {"shares": ["/usr", sys.base_prefix]})


@pytest.fixture(params=[pytest.param(way, id="-".join(way), marks=pytest.mark.xdist_group(way[0])) for way in WAYS])
def answer(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """What the rows answered behind these relays."""
    engine, transport = request.param
    environment = request.getfixturevalue(engine) | {vm_transport.VARIABLE: "host,127.0.0.1"}
    before = {key: os.environ.get(key) for key in environment}
    os.environ.update(environment)
    try:
        yield answers(engine, transport)
    finally:
        for key, value in before.items():
            os.environ.pop(key, None) if value is None else os.environ.update({key: value})


def test_no_row_gets_out(answer: dict[str, Any]) -> None:
    """Every escape is refused and heard by nobody, and every neighbour passes, but for what is named.

    HLD-4, HLD-13, HLD-14, B71, B77, B79.
    """
    assert answer.get("status") == 0, answer
    wrong = []
    for found in results([TABLE[name] for name in TRIED], NETNS, answer):
        if found.state in (OK, UNTESTABLE) or found.name in (MEANS_NOTHING | HOLES | NOT_CARRIED):
            continue
        is_neighbour = TABLE[found.name].expected[NETNS] == (PASSED,)
        refused = found.seen.isupper() and " " not in found.seen  # an errno by name, or a signal
        if (is_neighbour and found.name not in NOT_NEEDED) or (not is_neighbour and not refused):
            wrong.append(f"{found.name}: {found.proves} ended with {found.seen}")
    assert not wrong


def test_nobody_outside_heard_anything(answer: dict[str, Any]) -> None:
    """Not one listener of this machine was reached, but for the hole that the documents name (HLD-4, HLD-14)."""
    assert strangers(answer) == []
    heard = {said for _, said in answer["heard"] if "escaped-" in said}
    assert all(any(hole in said for hole in HOLES) for said in heard), heard
