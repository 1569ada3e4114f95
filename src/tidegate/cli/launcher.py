"""What a container of somebody else's launcher is started with, and what is seen to when a gate is put into it (HLD-4).

    <state>/tasks/ID/roots.pem     what the task trusts but for its authority, whose key ends with the server

Rules of the file: the files that say whom to trust keep their places on the disk, since they are mounted into a
container: when another server has made the task another authority, its certificate is written into the same files.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tidegate.cli.main import say
from tidegate.model.tools import URL, VARIABLE
from tidegate.runtime.state import make_task_folder, state_folder
from tidegate.runtime.trust import BUNDLE, SYSTEM_BUNDLES, renew_files, roots_of, trust_files, trusting

if TYPE_CHECKING:
    from tidegate.holds.container.attaching import Attached
    from tidegate.runtime.server_link import ServerLink

ROOTS = "roots.pem"
NO_IMAGE = (
    "note: which image it will be is not known, so its own bundle of roots stays as it is, and programs find the task's"
    " by their variables; to have it there too: --hold {0} --image IMAGE"
)


def options_for(engine: str, task: str, *, image: str, reads: bool, secrets: int, tools: bool) -> list[str]:
    """Return lines of options for a container of this task; `image` is '' where nobody has named it.

    `reads` says that hosts are read inside TLS, `tools` that the task has some.

    Raises:
        TidegateError: where the server, the engine or a source of a secret does not do its part.
    """
    from tidegate.holds.container.arguments import launcher_arguments
    from tidegate.holds.container.engine import Engine
    from tidegate.runtime.container_task import trusted_in
    from tidegate.runtime.environment import task_environment
    from tidegate.runtime.server_link import need_server
    from tidegate.runtime.task import GATE_HOST, GATE_PORT

    state = state_folder(os.environ)
    caller = {VARIABLE: URL} if tools else {}
    variables = task_environment(caller, task=task, host=GATE_HOST, port=GATE_PORT, own_loopback=True, capture=True)
    folder = make_task_folder(state, task)
    if not reads:
        return launcher_arguments(engine, task, folder, variables)
    link = need_server(state, say, "tidegate task create --print-args")
    try:
        authority, stand_ins = link.given(task, os.environ, secrets)
    finally:
        link.close()
    if image:
        pool, places = trusted_in(Engine(engine), image, os.environ, state)
        roots = pool.pem
    else:
        roots, places = roots_of(os.environ), ()
        say(NO_IMAGE.format(engine))
    with open(os.path.join(folder, ROOTS), "w", encoding="ascii") as file:
        file.write(roots)
    trust = trust_files(roots, authority, places)
    return launcher_arguments(engine, task, folder, trusting(variables) | stand_ins, trust)


def renewed(attached: Attached, state: str, task: str, link: ServerLink) -> str:
    """Have a container trust the authority that its task has now; return what it was started without, '' for none."""
    without = [f"${name}" for name in link.own if attached.variables.get(name) != link.variables[name]]
    if link.authority:
        folder = os.path.join(state, "tasks", task)
        mounted = {place: source for place, source in attached.mounts.items() if os.path.dirname(source) == folder}
        try:
            with open(os.path.join(folder, ROOTS), encoding="ascii") as file:
                roots = file.read()
        except OSError:
            roots = ""
        if roots and BUNDLE in mounted and attached.variables.get("SSL_CERT_FILE") == BUNDLE:
            renew_files(mounted, dict(trust_files(roots, link.authority, SYSTEM_BUNDLES)))
        else:
            without.insert(0, "the files and variables by which its programs trust what is read")
    if not without:
        return ""
    return (
        f"the container was started without {', '.join(without)}: hosts that need them refuse its programs, or are"
        " refused by them; start it with what `tidegate task create --print-args` prints"
    )
