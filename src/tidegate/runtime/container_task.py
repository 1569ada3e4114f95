"""What differs for a task in a container: host name, variables, whom it trusts, its relays, and how long it lives."""

from __future__ import annotations

import os

from tidegate.holds.inside import PORTS
from tidegate.model.errors import NotSavedError, StartError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidegate.holds.container.engine import Engine
    from tidegate.holds.hold import Container, Hold, RunningTask
    from tidegate.runtime.comeback import Comeback
    from tidegate.runtime.link import Link
    from tidegate.runtime.root_pool import RootPool
    from tidegate.runtime.server_sign import ServerSign
    from tidegate.runtime.task import Order


def with_relay(container: Container, state: str) -> Container:
    """Return the wish with the state folder, and with the image that the settings name where the wish names none.

    Raises:
        StartError: when the settings cannot be read: another image than the one that was set is never taken.
    """
    from tidegate.state.folders import STORE_FILE

    container = container.replace(state=state)
    if container.relay_image or not os.path.lexists(os.path.join(state, STORE_FILE)):
        return container
    from tidegate.state.sqlite import open_store

    store = open_store(state)
    try:
        return container.replace(relay_image=store.settings().relay_image)
    except NotSavedError as error:
        raise StartError(error.what, fix=error.fix, code="store") from None
    finally:
        store.close()


def node_name(container: Container | None) -> str:
    """Return the host name that a task has."""
    if container is None:
        return os.uname().nodename
    from tidegate.holds.container.enter import HOST

    return HOST


def engine_of(hold: Hold) -> Engine:
    """Return the engine of a hold, which has been asked some things already."""
    from tidegate.holds.container.container_hold import ContainerHold
    from tidegate.holds.container.engine import Engine

    return hold.engine if isinstance(hold, ContainerHold) else Engine(hold.name)


def in_container(hold: Hold, container: Container, environ: Mapping[str, str]) -> dict[str, str]:
    """What a container has in place of the caller's whole environment."""
    from tidegate.holds.container.worker import image_variables, kept_variables

    return image_variables(engine_of(hold).image(container.image)) | kept_variables(environ, container.options)


def trusted_in(asked: Engine, image: str, environ: Mapping[str, str], state: str) -> tuple[RootPool, tuple[str, ...]]:
    """Return the roots of a task in a container of this image, and where the image has bundles (INS-2).

    They are the image's, those that its own variables name among them, and the caller's. What tools brought in their
    own lists is lost to them where a variable names our bundle, so an image without a bundle gets the machine's roots.
    What the image has is kept in the state folder.

    Raises:
        StartError: where the engine cannot be asked.
    """
    from tidegate.holds.container.image_kept import files_of
    from tidegate.holds.container.worker import image_variables
    from tidegate.runtime.root_pool import RootPool
    from tidegate.runtime.trust import SYSTEM_BUNDLES, extra_roots, named_bundles, roots_of

    about = asked.image(image)
    files = files_of(asked, about, image, (*SYSTEM_BUNDLES, *named_bundles(image_variables(about))), state)
    places = tuple(path for path in SYSTEM_BUNDLES if path in files)
    texts = [content.decode("ascii", "replace") for content in files.values()]
    if not places:
        texts.append(roots_of(environ))
    return RootPool("\n".join((*texts, extra_roots(environ)))), places


def comeback_of(link: Link, task: RunningTask, order: Order, roots: str) -> Comeback | None:
    """Return what leads this task from its server to the next one; None where it ends with its gate.

    `roots` are what it trusts, but for its authority, as PEM.
    """
    if task.serve_again is None:
        return None
    from tidegate.runtime.server_link import ServerLink

    if not isinstance(link, ServerLink):
        return None
    from tidegate.runtime.comeback import Comeback

    return Comeback(link, task, order.state, ports=order.capture == PORTS, roots=roots)


def server_of(link: Link, task: RunningTask, state: str) -> ServerSign | None:
    """Return what tells whether the server of this task goes on; None where its gate is a child of ours."""
    if link.pid:
        return None
    from tidegate.runtime.server_sign import ServerSign
    from tidegate.runtime.ways import peer_of

    return ServerSign(state, peer_of(link.fileno()), task.shut)
