"""tidegate.runtime.served: what a hold handed over is served whole, or not at all."""

from __future__ import annotations

import os
import socket
import time

import pytest

from tests.descriptors import descriptors
from tests.unit.gate.kit import Recording, policy_of
from tidegate.gate import identity
from tidegate.gate.gate import Gate, GateTask
from tidegate.gate.identity import owned_by
from tidegate.holds.inside import ADDRESSED, DATAGRAMS, MET, MOULD, PROXY, STREAMS, TaskSockets, owner_role
from tidegate.model.errors import StartError
from tidegate.runtime.served import serve_sockets
from tidegate.wire.attempt import Attempt


def _listening() -> int:
    return socket.create_server(("127.0.0.1", 0)).detach()


def _gate() -> Gate:
    return Gate(recorder=Recording(), wall=time.time)  # noqa: TID251  the clock comes in here


@pytest.mark.usefixtures("isolated")
def test_closing_gives_every_descriptor_back() -> None:
    """HLD-8: a command that has ended leaves nothing in a gate that lives on."""
    gate = _gate()
    before = descriptors()
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind(("127.0.0.1", 0))
    roles = (PROXY, ADDRESSED, DATAGRAMS, STREAMS)
    fds = (_listening(), _listening(), datagrams.detach(), _listening())
    served = serve_sockets(gate, GateTask("t1", policy_of()), TaskSockets(roles, fds), ())
    assert len(gate.listeners) == 2
    served.close(cut=True)
    served.close(cut=True)
    assert not gate.listeners
    assert descriptors() <= before
    gate.close()


@pytest.mark.usefixtures("isolated")
@pytest.mark.parametrize(
    "roles", [(PROXY, PROXY), (PROXY, ADDRESSED), (PROXY, STREAMS), (PROXY, DATAGRAMS), (PROXY, MOULD), (PROXY, MET)]
)
def test_one_that_is_no_socket_closes_them_all(roles: tuple[str, ...]) -> None:
    """HLD-7: nothing is served where one descriptor is not what its role says, and none is left open."""
    gate = _gate()
    before = descriptors()
    fds = (_listening(), os.open("/dev/null", os.O_RDWR))
    with pytest.raises(OSError, match=r"."):
        serve_sockets(
            gate,
            GateTask("t1", policy_of()),
            TaskSockets(roles, fds),
            (),
            met=(("localhost", 5432),) * roles.count(MET),
        )
    assert not gate.listeners
    assert descriptors() <= before
    gate.close()


@pytest.mark.usefixtures("isolated")
def test_who_does_not_belong_comes_in_nowhere() -> None:
    """GAT-2, HLD-3: each listener that a task connects to asks; one of another user is served at none of them."""
    gate = _gate()
    roles = (PROXY, ADDRESSED, MET)
    fds = (_listening(), _listening(), _listening())
    met = (("localhost", 5432),)
    served = serve_sockets(gate, GateTask("t1", policy_of()), TaskSockets(roles, fds), (), met=met)
    assert all(one.identify is None for one in served.outward()), "who has a network of its own is not asked about"
    served.close(cut=True)
    fds = (_listening(), _listening(), _listening())
    guarded = serve_sockets(
        gate, GateTask("t1", policy_of()), TaskSockets(roles, fds), (), met=met, belongs=owned_by(30001)
    )
    assert len(guarded.outward()) == 3
    assert all(one.identify is not None for one in guarded.outward())
    guarded.close(cut=True)
    gate.close()


@pytest.mark.usefixtures("isolated")
def test_what_its_user_tries_is_the_tasks_until_it_is_closed() -> None:
    """JRN-3: an attempt is in the task's journal while it is served; afterwards the user may be another's."""
    gate = _gate()
    recording = Recording()
    served = serve_sockets(
        gate, GateTask("t1", policy_of(), recorder=recording), TaskSockets((PROXY,), (_listening(),)), ()
    )
    served.hear_around(GateTask("t1", policy_of(), recorder=recording), 30001)
    assert gate.around is not None
    attempt = Attempt("tcp", bytes((1, 2, 3, 4)), 443, 30001)
    for _ in range(3):
        gate.around.take(attempt)
    served.close(cut=True)
    assert [(event.host, event.count) for event in recording.events] == [("1.2.3.4", 1), ("1.2.3.4", 2)]
    gate.around.take(attempt)
    assert (gate.around.unclaimed, len(recording.events)) == (1, 2)
    gate.close()


@pytest.mark.usefixtures("isolated")
def test_where_the_kernel_does_not_say_whose_a_connection_is_nothing_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """HLD-7, GAT-2: one line with what to load, nothing left open; a task with a network of its own does not care."""
    gate = _gate()
    before = descriptors()

    def missing(_protocol: int) -> None:
        raise OSError(93, "Protocol not supported")

    monkeypatch.setattr(identity, "_Kernel", missing)
    owner = os.open(os.devnull, os.O_RDONLY)
    sockets = TaskSockets((PROXY, owner_role(30001)), (_listening(), owner))
    with pytest.raises(StartError, match="whose a connection is") as caught:
        serve_sockets(gate, GateTask("t1", policy_of()), sockets, ())
    assert "modprobe" in caught.value.fix
    assert descriptors() <= before
    served = serve_sockets(gate, GateTask("t1", policy_of()), TaskSockets((PROXY,), (_listening(),)), ())
    served.close(cut=True)
    gate.close()


@pytest.mark.usefixtures("isolated")
def test_a_way_that_carries_the_proxy_alone_meets_no_service() -> None:
    """HLD-4: a rule for a service of this machine is no reason to refuse a relay's one socket."""
    gate = _gate()
    task = GateTask("t1", policy_of())
    served = serve_sockets(gate, task, TaskSockets((PROXY,), (_listening(),)), (), met=(("localhost", 5432),))
    assert len(gate.listeners) == 1
    assert task.met == {}
    served.close(cut=True)
    gate.close()
