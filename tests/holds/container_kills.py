"""Launches a container task and kills who does it at one step: `container_kills.py STEP ENGINE IMAGE TRANSPORT STATE`.

Run by test_container_kills.py as a program of its own, which ends by SIGKILL wherever it comes to the step, and with 0
where it never does. What it killed with itself is said there.
"""

from __future__ import annotations

import os
import sys
import tempfile
from typing import TYPE_CHECKING, Any

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "src"))

from tidegate.holds import control
from tidegate.holds.container import choice, container_hold, door_link, relay_rules, relays, vm_transport, work_folder
from tidegate.holds.container.container_hold import ContainerHold
from tidegate.holds.container.engine import Engine
from tidegate.holds.container.enter import Entered
from tidegate.holds.container.keeper import Keeper
from tidegate.holds.container.relay_transport import Relayed
from tidegate.holds.hold import Container, LaunchSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.holds.inside import TaskSockets

LAUNCH = ("folder", "first made", "first started", "delivered", "worker made", "kept", "attended", "started")
RELEASE = ("releasing", "worker gone", "way closed")
RELAY = ("sockets", "way open")
RULES = ("rules begun", "rules laid")
"""With capture: while who makes the rules has its right, and once it is gone."""
CARRIED = ("keys begun", "keys", "registered", "volume", "carrier made", "both made")

keepers: list[int] = []
made: list[TaskSockets] = []


def die(*_a: Any, **_k: Any) -> None:
    """End at once, and the keeper with it: nobody is left who could put anything right."""
    for pid in keepers:
        os.kill(pid, 9)
    os.kill(os.getpid(), 9)


def after(owner: Any, name: str, times: int = 1, act: Callable[[], None] = die) -> None:
    """Die once this was done so many times."""
    before, left = getattr(owner, name), [times]

    def both(*a: Any, **k: Any) -> Any:
        done = before(*a, **k)
        left[0] -= 1
        if left[0] == 0:
            act()
        return done

    setattr(owner, name, both)


def in_the_keeper(act: Callable[[], None]) -> Callable[[], None]:
    """Only in the child that removes."""
    front = os.getpid()

    def only() -> None:
        if os.getpid() != front:
            act()

    return only


def arm(step: str, transport: str) -> None:
    """Die at this step."""
    calls: dict[str, tuple[Any, str, int]] = {
        "folder": (tempfile, "mkdtemp", 1),
        "first made": (Engine, "create", 1),
        "first started": (Engine, "start", 1),
        "worker made": (container_hold, "create_worker", 1),
        "sockets": (relays.Sockets, "__init__", 1),
        "way open": (relays, "wait_for_life", 1),
        "rules begun": (relays, "make", 3 if transport == "vm" else 2),
        "rules laid": (relay_rules, "lay", 1),
        "keys": (vm_transport, "_write_keys", 1),
        "registered": (door_link, "register", 1),
        "carrier made": (Engine, "start", 1),
        "both made": (Engine, "start", 2),
    }
    if step in calls:
        after(*calls[step])
    elif step == "keys begun":
        after(os, "mkdir", 2)  # the folder of the sockets is the first
    elif step == "volume":
        run = Engine.run

        def then(self: Engine, *a: str, **k: Any) -> str:
            said = run(self, *a, **k)
            if a[:2] == ("volume", "create"):
                die()
            return said

        Engine.run = then  # type: ignore[method-assign]
    elif step == "releasing":
        remove = Engine.remove

        def first(self: Engine, *a: str) -> None:
            in_the_keeper(die)()
            remove(self, *a)

        Engine.remove = first  # type: ignore[method-assign]
    elif step == "worker gone":
        after(Engine, "remove", act=in_the_keeper(die))
    elif step == "way closed":
        for kind in (Entered, Relayed, vm_transport.Carried):
            after(kind, "close", act=in_the_keeper(die))


def main(step: str, name: str, image: str, transport: str, state: str) -> None:
    """See the head of the file."""

    def deliver(sockets: TaskSockets) -> None:
        made.append(sockets)
        for descriptor in sockets.descriptors:
            os.dup(descriptor)  # whoever serves them: nobody does
        if step == "delivered":
            die()

    begin = Keeper.__init__

    def kept(self: Keeper, finish: Callable[[], None]) -> None:
        begin(self, finish)
        keepers.append(self._pid)
        if step == "kept":
            die()

    Keeper.__init__ = kept  # type: ignore[method-assign]
    work_folder.WorkFolder("").remove()
    choice.forget(Engine(name), state)
    arm(step, transport)
    spec = LaunchSpec(
        argv=("sleep", "0.1" if step in (*RELEASE, "never") else "1000"),
        env={"PATH": "/bin"},
        cwd="/",
        selftest=False,
        run_id="killed",
        capture="on" if step in RULES else "off",
        container=Container(image=image, transport=transport, state=state),
    )
    task = ContainerHold(name).launch(spec, deliver)
    if step == "attended":
        die()
    task.start()
    while (heard := control.receive(task.control)) is not None:
        if step == "started" and heard[0].startswith("started"):
            die()
    task.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
