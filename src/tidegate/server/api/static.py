"""The portal's files, from memory: what is in the folder when the server starts is all there is.

So a path can lead nowhere else, no folder is ever listed, and an update of the files on disk cannot mix with the pages
that are open. Each has an entity tag; a browser asks each time and is told that nothing changed (304).
"""

from __future__ import annotations

import os
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import msgspec
from starlette.responses import Response

if TYPE_CHECKING:
    from starlette.requests import Request

MAX_FILE: Final = 4 * 1024 * 1024
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
}


class StaticFile(msgspec.Struct, frozen=True):
    """One file as it is served."""

    content: bytes
    media_type: str
    tag: str

    def respond(self, request: Request) -> Response:
        """Return the file, or 304 where the browser has it."""
        headers = {"ETag": self.tag, "Cache-Control": "no-cache"}
        known = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
        if self.tag in known:
            return Response(status_code=304, headers=headers)
        return Response(self.content, headers=headers, media_type=self.media_type)


def load(folder: str) -> dict[str, StaticFile]:
    """Return the files of a folder and those below it by the path they are asked for; `index.html` is `/`.

    Files of a type that is not known here, hidden ones and symlinks are left out. Empty where there is no folder.
    """
    files: dict[str, StaticFile] = {}
    for where, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "__"))]
        for name in names:
            path = os.path.join(where, name)
            media_type = _TYPES.get(os.path.splitext(name)[1])
            if media_type is None or name.startswith(".") or os.path.islink(path):
                continue
            with open(path, "rb") as file:
                content = file.read(MAX_FILE + 1)
            if len(content) > MAX_FILE:
                continue
            asked = "/" + os.path.relpath(path, folder).replace(os.sep, "/")
            files["/" if asked == "/index.html" else asked] = StaticFile(
                content, media_type, f'"{sha256(content).hexdigest()[:32]}"'
            )
    return files
