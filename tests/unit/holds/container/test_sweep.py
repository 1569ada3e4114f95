"""sweep.py: what a crash left (tests/holds/test_containers.py does it with the real engines)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tidegate.holds.container import owner
from tidegate.holds.container.engine import DOCKER, LABEL_OWNER, Engine
from tidegate.holds.container.sweep import sweep

if TYPE_CHECKING:
    from pathlib import Path


def test_only_what_has_no_owner_goes(tmp_path: Path) -> None:
    """Of five containers those of an ended process go, but for one to be kept and one that is labelled by its image.

    HLD-8: whose container that is, its image cannot say.
    """
    place = owner.me().rpartition("/")[0].rpartition("/")[0]
    labels = {"dead": f"{place}/{1 << 22}/1", "kept": f"{place}/{1 << 22}/1", "mine": owner.me(), "else": "server/x"}
    labels["image"] = labels["dead"]
    for name, label in labels.items():
        (tmp_path / name).write_text(
            json.dumps(
                [
                    {
                        "Name": "/web" if name == "image" else f"/tidegate-{name}",
                        "Config": {"Labels": {LABEL_OWNER: label}},
                    }
                ]
            )
        )
    program = tmp_path / "docker"
    program.write_text(
        f'#!/bin/sh\ncase "$1" in ps) echo {" ".join(labels)};; container) cat {tmp_path}/$3;;'
        f' rm) echo "$4" >> {tmp_path}/removed;; esac\n'
    )
    program.chmod(0o755)
    engine = Engine(DOCKER, {"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert sweep(engine, frozenset({"kept"})) == ["dead"]
    assert (tmp_path / "removed").read_text() == "dead\n"
