"""The table of escapes, tried in containers whose gate is behind relays (HLD-4 (b) and (c), HLD-11, HLD-13).

The rows are those of `netns`, without capture and with it. What means something else in a container is named in
tidegate/doctor/escapes/in_containers.py, and what does behind a relay here.
"""

from __future__ import annotations

import functools
import os
import sys
import tempfile
from typing import TYPE_CHECKING, Any

import pytest

from tests.engines import IMAGE
from tests.holds.held import HERE
from tests.holds.test_container_escapes import heard_by_nobody, in_surroundings, not_held
from tidegate.doctor.escapes import rows as _rows  # noqa: F401 (fills the table)
from tidegate.doctor.escapes.attempt import attempt
from tidegate.doctor.escapes.in_containers import SHARES, tried
from tidegate.doctor.escapes.table import CAPTURED, NETNS
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
TRIED = {column: tried(column, "root") for column in (NETNS, CAPTURED)}
WAYS = [
    (engine, transport, column)
    for engine in ("docker", "podman")
    for transport in ("relay", "vm")
    for column in (NETNS, CAPTURED)
]
CARRIED = os.path.join(HERE, "escapes", "carried.py")
"""docker's daemon is in another network than the trial: its front leads the carrier from there to the listener."""


@functools.cache
def answers(engine: str, transport: str, column: str) -> dict[str, Any]:
    """Try the whole table in one container."""
    one = Engine(engine)
    if not one.has_image(default_image()):
        one.import_image(default_image(), make_tar(), CHANGES)
    with tempfile.TemporaryDirectory(prefix="tidegate-relay-escapes-", dir="/var/tmp") as state:
        container = {"engine": engine, "image": IMAGE, "transport": transport, "state": state}
        front = (sys.executable, "-I", CARRIED) if (engine, transport) == ("docker", "vm") else ()
        return attempt(column, rows=TRIED[column], container=container | {"shares": SHARES}, front=front)


@pytest.fixture(params=[pytest.param(way, id="-".join(way), marks=pytest.mark.xdist_group(way[0])) for way in WAYS])
def answer(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """What the rows answered behind these relays; `column` is which rows."""
    engine, transport, column = request.param
    environment = request.getfixturevalue(engine) | {vm_transport.VARIABLE: "host,127.0.0.1"}
    with in_surroundings(environment):
        yield answers(engine, transport, column) | {"column": column}


def test_no_row_gets_out(answer: dict[str, Any]) -> None:
    """Every escape is refused and heard by nobody, and every neighbour passes, but for what is named.

    HLD-4, HLD-13, HLD-14, B71, B77, B79.
    """
    assert answer.get("status") == 0, answer
    column = answer["column"]
    assert not not_held(answer, [name for name in TRIED[column] if name not in NOT_CARRIED], column)


def test_nobody_outside_heard_anything(answer: dict[str, Any]) -> None:
    """Not one listener of this machine was reached (HLD-4, HLD-14)."""
    heard_by_nobody(answer)
