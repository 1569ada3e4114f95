"""tidegate.runtime.pulse: a number that is counted up, and who looks at it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tidegate.runtime.pulse import NAME, Pulse, Watched

if TYPE_CHECKING:
    from pathlib import Path


def test_what_counts_is_alive_and_what_stands_still_is_silent(tmp_path: Path) -> None:
    """HLD-7: by the clock of who looks, from when it first looked."""
    (tmp_path / "run").mkdir()
    pulse = Pulse(str(tmp_path))
    assert os.stat(tmp_path / "run" / NAME).st_mode & 0o777 == 0o600
    watched = Watched(str(tmp_path))
    assert watched.silence(50.0) == 0
    assert watched.silence(51.0) == 1
    pulse.beat()
    assert watched.silence(52.0) == 0
    assert watched.silence(54.5) == 2.5
    watched.close()
    assert watched.silence(60.0) == 0
    pulse.close()
    assert not os.path.exists(tmp_path / "run" / NAME)


def test_each_server_has_its_own(tmp_path: Path) -> None:
    """HLD-8: one that was killed stands still for who looked at it, whatever the next one counts."""
    (tmp_path / "run").mkdir()
    Pulse(str(tmp_path))
    before = Watched(str(tmp_path))
    after = Pulse(str(tmp_path))
    before.silence(1.0)
    after.beat()
    assert before.silence(3.0) == 2.0
    before.close()
    after.close()


def test_without_a_pulse_nobody_is_silent(tmp_path: Path) -> None:
    """The end of a server is heard of by its channel."""
    assert Watched(str(tmp_path)).silence(9.0) == 0
