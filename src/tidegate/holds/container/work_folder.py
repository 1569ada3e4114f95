"""A folder for what a container is given by its engine: private to this user, gone with the task."""

from __future__ import annotations

import os
import shutil
import tempfile

_PREFIX = "tidegate-container-"


class WorkFolder:
    """One such folder, below /run/user where there is one, else below the folder for temporary files."""

    def __init__(self) -> None:
        runtime = f"/run/user/{os.getuid()}"
        self.path = tempfile.mkdtemp(prefix=_PREFIX, dir=runtime if os.access(runtime, os.W_OK) else None)

    def remove(self) -> None:
        """Remove it; may be called twice."""
        shutil.rmtree(self.path, ignore_errors=True)
