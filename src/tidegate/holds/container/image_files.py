"""Files of an image, read without running anything of it: whom its programs trust (INS-2).

The engine copies them out of a container that is made and never started; nothing of the image is changed. Links are
followed inside the image only, by the engine.
"""

from __future__ import annotations

import io
import os
import tarfile

from tidegate.holds.container import owner
from tidegate.holds.container.engine import DOCKER, LABEL_OWNER, LABEL_PART
from tidegate.model.errors import StartError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidegate.holds.container.engine import Engine

PART = "look"
MOST = 1 << 24  # bytes of one file: the largest bundle in use has a quarter of a MiB
_NOT_THERE = ("could not find", "could not be found", "no such file", "not a directory")


def read_files(engine: Engine, image: str, paths: Iterable[str]) -> dict[str, bytes]:
    """Return those of these files that an image has, by the paths asked for.

    Raises:
        StartError: where the engine cannot be asked.
    """
    wanted = [path for path in dict.fromkeys(paths) if os.path.isabs(path)]
    if not wanted:
        return {}
    labels = {LABEL_OWNER: owner.me(), LABEL_PART: PART}
    options = [
        *("--name", f"tidegate-look-{os.getpid()}-{os.urandom(4).hex()}", "--network", "none", "--entrypoint", ""),
        *(part for name, value in labels.items() for part in ("--label", f"{name}={value}")),
    ]
    container = engine.create(image, options, ("/",))
    try:
        found = {path: _file(engine, container, path) for path in wanted}
    finally:
        engine.discard(container)
    return {path: content for path, content in found.items() if content is not None}


def _file(engine: Engine, container: str, path: str) -> bytes | None:
    follow = ("--follow-link",) if engine.name == DOCKER else ()  # podman always does
    try:
        copied = engine.read("cp", *follow, f"{container}:{path}", "-")
    except StartError as error:
        if error.code == "engine" and any(word in error.what.lower() for word in _NOT_THERE):
            return None
        raise
    try:
        with tarfile.open(fileobj=io.BytesIO(copied)) as tar:
            member = tar.next()
            file = tar.extractfile(member) if member is not None and member.isreg() else None
            return file.read(MOST) if file is not None else None
    except tarfile.TarError:
        return None
