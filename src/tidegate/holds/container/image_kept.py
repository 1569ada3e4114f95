"""What was read of an image is kept in the state folder, so that it is read once and not for each task (INS-2).

Rules of the file:

* What is kept is found by the image's id, which is the digest of what it is made of, and by the paths that were wanted:
  another image has another id, so nothing that is kept can be out of date. An image without such an id is read anew.
* At most KEPT images, each up to LARGEST; those that were used last stay.
* A file is made beside its place and moved there whole, so two at once only do the same work twice. What cannot be
  written or read costs the look at the image again, and nothing else.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress

from tidegate.holds.container.image_files import read_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from tidegate.holds.container.engine import Engine

FOLDER = "images"  # in the state folder
KEPT = 32
LARGEST = 1 << 21  # bytes of one image's files
_ID = re.compile(r"(?:sha256:)?[0-9a-f]{64}")
_PLATFORM = ("Architecture", "Os", "Variant")  # docker can have one id for an image of several


def files_of(engine: Engine, image: Mapping[str, Any], name: str, paths: Iterable[str], state: str) -> dict[str, bytes]:
    """Return those of these files that an image has, by the paths asked for.

    `image` is what the engine knows of it, `name` what people call it, `state` the state folder.

    Raises:
        StartError: where the engine cannot be asked.
    """
    wanted = tuple(dict.fromkeys(paths))
    identity = str(image.get("Id", ""))
    if not _ID.fullmatch(identity):
        return read_files(engine, name, wanted)
    place = os.path.join(state, FOLDER, _key(identity, image, wanted))
    found = _taken(place, wanted)
    if found is None:
        found = read_files(engine, identity, wanted)
        with suppress(OSError):
            _keep(place, found)
    return found


def _key(identity: str, image: Mapping[str, Any], wanted: tuple[str, ...]) -> str:
    from hashlib import sha256

    parts = (identity.removeprefix("sha256:"), *(str(image.get(one) or "") for one in _PLATFORM), *wanted)
    return sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


def _taken(place: str, wanted: tuple[str, ...]) -> dict[str, bytes] | None:
    from json import loads

    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            found = loads(file.read(2 * LARGEST))
            os.utime(descriptor)
        if not isinstance(found, dict) or not set(found) <= set(wanted):
            return None
        return {path: content.encode("latin-1") for path, content in found.items()}
    except (OSError, ValueError, AttributeError):
        return None


def _keep(place: str, found: Mapping[str, bytes]) -> None:
    from json import dumps

    if sum(map(len, found.values())) > LARGEST:
        return
    folder = os.path.dirname(place)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    made = os.path.join(folder, f".{os.urandom(8).hex()}")
    try:
        descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(dumps({path: content.decode("latin-1") for path, content in found.items()}))
        os.replace(made, place)
    except BaseException:
        with suppress(OSError):
            os.unlink(made)
        raise
    _bound(folder)


def _bound(folder: str) -> None:
    with os.scandir(folder) as entries:
        found = sorted(entries, key=_used, reverse=True)
    for one in found[KEPT:]:
        with suppress(OSError):
            os.unlink(one.path)


def _used(entry: os.DirEntry[str]) -> float:
    try:
        return entry.stat(follow_symlinks=False).st_mtime
    except OSError:
        return 0.0
