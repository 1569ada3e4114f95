"""What a crash left: containers and volumes by label, folders by a file in them, where their owner has ended (HLD-8).

Containers and folders are looked for before each task; volumes, which one transport alone makes, before each of its.
"""

from __future__ import annotations

from contextlib import suppress

from tidegate.holds.container import owner
from tidegate.holds.container.engine import LABEL_OWNER, LABEL_PART
from tidegate.holds.container.relay_rules import PART as RULES
from tidegate.holds.container.work_folder import sweep_folders
from tidegate.holds.container.worker import PART as WORKER
from tidegate.model.errors import StartError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.holds.container.engine import Engine


_GUESTS = (WORKER, RULES)  # who is in the network of another
_NAMES = "tidegate-"  # what every container of ours is called; an image cannot name its containers


def sweep_volumes(engine: Engine) -> list[str]:
    """Remove the volumes that nobody owns any more, and return their names. One that is in use stays.

    Raises:
        StartError: when the engine does not answer.
    """
    left = []
    for name in engine.run("volume", "ls", "--quiet", "--filter", f"label={LABEL_OWNER}").split():
        with suppress(StartError):  # another sweep was faster, or a container has it still
            label = engine.run("volume", "inspect", "--format", f'{{{{index .Labels "{LABEL_OWNER}"}}}}', name)
            if owner.is_gone(label):
                engine.run("volume", "rm", name)
                left.append(name)
    return left


def sweep(engine: Engine, kept: frozenset[str] = frozenset(), state: str = "") -> list[str]:
    """Remove what nobody owns any more; the ids of that. `kept` are ids of containers that stay.

    Raises:
        StartError: when the engine does not do it.
    """
    ours = [found for found in engine.labelled(LABEL_OWNER) if found["name"].startswith(_NAMES)]
    ours.sort(key=lambda found: found.get(LABEL_PART) not in _GUESTS)  # podman keeps a network that somebody is in
    left = [found["id"] for found in ours if found["id"] not in kept and owner.is_gone(found.get(LABEL_OWNER, ""))]
    engine.remove(*left)
    sweep_folders(state)
    return left
