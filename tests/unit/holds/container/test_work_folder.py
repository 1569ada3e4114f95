"""work_folder.py."""

from __future__ import annotations

import os

from tidegate.holds.container.work_folder import WorkFolder


def test_it_is_private_and_goes() -> None:
    """Only this user may look into it, and it is gone afterwards, asked once or twice."""
    folder = WorkFolder()
    assert os.stat(folder.path).st_mode & 0o777 == 0o700
    with open(os.path.join(folder.path, "file"), "w", encoding="ascii"):
        pass
    folder.remove()
    folder.remove()
    assert not os.path.exists(folder.path)
