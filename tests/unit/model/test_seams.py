"""tidegate.model.seams."""

from __future__ import annotations

from tidegate.model import seams
from tidegate.model.seams import Asker, Inspector, Recorder


def test_the_seams_are_small_and_import_nothing_of_other_rooms() -> None:
    """The gate knows of rooms below it only what these three say."""
    assert {name for name in vars(Recorder) if not name.startswith("_")} == {"record", "flush"}
    assert {name for name in vars(Asker) if not name.startswith("_")} == {"ask", "known", "failed", "spend"}
    assert {name for name in vars(Inspector) if not name.startswith("_")} == {
        "covers", "guard", "upstream", "client", "offers", "streams",
    }  # fmt: skip
    assert not any(name in vars(seams) for name in ("Decision", "Event"))
