"""What to add to one's own `docker run` or `podman run`, so that `tidegate attach` can put a gate into it (HLD-4).

The same as our own workers get: no network, no right, our filter, the gate's resolver, and the files that say whom to
trust. The variables of the task are in a file, which the launcher names. All of it lies in the task's folder and goes
with that.
"""

from __future__ import annotations

import shlex

from tidegate.holds.container.confinement import confining
from tidegate.holds.container.engine import LABEL_RUN, Engine
from tidegate.holds.container.view import file_mount, trust_mounts
from tidegate.holds.container.worker import resolver_file, variables_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def launcher_arguments(
    engine: str, task: str, folder: str, variables: Mapping[str, str], trust: Iterable[tuple[str, bytes]] = ()
) -> list[str]:
    """Lines of options, quoted for a shell. `trust` are files by their places inside.

    Raises:
        StartError: where the files for it cannot be made.
    """
    options = [
        *("--network", "none", "--label", f"{LABEL_RUN}={task}"),
        *confining(Engine(engine), folder),
        *("--env-file", variables_file(folder, variables, {})),
        *file_mount(resolver_file(folder), "/etc/resolv.conf"),
        *trust_mounts(trust, folder),
    ]
    return [" ".join(map(shlex.quote, options))]
