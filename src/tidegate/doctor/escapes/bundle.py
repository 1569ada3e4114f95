"""The table as one file: an archive that Python runs (zipapp), put where the task can see it.

The installation itself may be out of a task's sight, below /tmp for one.
"""

from __future__ import annotations

import os
import zipfile

_PARTS = ("table.py", "without_namespaces.py", "tools.py", "needs.py", "inside.py")
_MAIN = "from tidegate.doctor.escapes.inside import main\n\nmain()\n"


def write_bundle(path: str) -> None:
    """Write the archive.

    Raises:
        OSError: when it cannot be written.
    """
    here = os.path.dirname(os.path.abspath(__file__))
    rows = sorted(name for name in os.listdir(os.path.join(here, "rows")) if name.endswith(".py"))
    folder = "tidegate/doctor/escapes"
    with zipfile.ZipFile(path, "w") as archive:
        for package in ("tidegate", "tidegate/doctor", folder):
            archive.writestr(f"{package}/__init__.py", "")
        for name in (*_PARTS, *(f"rows/{name}" for name in rows)):
            archive.write(os.path.join(here, name), f"{folder}/{name}")
        archive.writestr("__main__.py", _MAIN)
