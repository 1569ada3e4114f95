"""The small init programs that engines bring: which of them this machine has for PID 1 of a container."""

from __future__ import annotations

import os

from tidegate.holds.container import elf
from tidegate.holds.container.engine import DOCKER
from tidegate.model.errors import StartError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.holds.container.engine import Engine

_INITS = (
    *("/usr/bin/docker-init", "/usr/libexec/docker/docker-init", "/usr/local/bin/docker-init", "/usr/bin/tini-static"),
    *("/usr/libexec/podman/catatonit", "/usr/bin/catatonit"),
)
"""The small init programs that engines bring. One that needs a C library is of no use in a container."""


def find_init(engine: Engine) -> str:
    """An init program of this machine that runs in any container.

    Raises:
        StartError: where there is none.
    """
    for path in _INITS if engine.name == DOCKER else reversed(_INITS):
        if os.access(path, os.X_OK) and not elf.interpreter(path):
            return path
    package = "tini" if engine.name == DOCKER else "catatonit"
    raise StartError(
        f"there is no init program for the containers of {engine.name}",
        fix=f"apt install {package}",
        code="container-init",
    )
