"""Files of an image, read without running anything of it: whom its programs trust (INS-2).

The engine copies them out of a container that is made and never started; nothing of the image is changed. Links are
followed inside the image only, by the engine.

Rules of the file: an image is anybody's, so no more of it is read than a file of roots may have. What is larger, or
a folder, is none.
"""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import tempfile
import threading

from tidegate.holds.container import owner
from tidegate.holds.container.engine import DOCKER, LABEL_OWNER, LABEL_PART, PATIENCE
from tidegate.model.errors import StartError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidegate.holds.container.engine import Engine

PART = "look"
MOST = 1 << 24  # bytes of one file: the largest bundle in use has a quarter of a MiB
_AROUND = 1 << 16  # bytes that a tar file has besides
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
        copied = _copied(engine, "cp", *follow, f"{container}:{path}", "-")
    except StartError as error:
        if error.code == "engine" and any(word in error.what.lower() for word in _NOT_THERE):
            return None
        raise
    try:
        with tarfile.open(fileobj=io.BytesIO(copied)) as tar:
            member = tar.next()
            plain = member is not None and member.isreg() and member.size <= MOST
            file = tar.extractfile(member) if member is not None and plain else None
            return file.read() if file is not None else None
    except tarfile.TarError:
        return None


def _copied(engine: Engine, *words: str) -> bytes:
    """What the engine prints; where that is more than a file may be, the beginning of it.

    Raises:
        StartError: as Engine.run.
    """
    with tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen(
                [*engine.command, *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
                env=engine.environ,
                start_new_session=True,
            )
        except OSError as error:
            raise StartError(f"{engine.name} cannot be run: {error.strerror}", code="engine") from None
        late = threading.Timer(PATIENCE, process.kill)
        late.start()
        try:
            assert process.stdout is not None
            with process.stdout as pipe:
                copied = pipe.read(MOST + _AROUND)
            if len(copied) == MOST + _AROUND:
                process.kill()
                process.wait()
                return copied
            status = process.wait()
        finally:
            late.cancel()
        said.seek(0)
        if status:
            raise engine.failure(words[0], said.read(1 << 16).decode("utf-8", "replace"))
    return copied
