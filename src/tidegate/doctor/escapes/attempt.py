"""One trial from beginning to end: a folder for it, the process that does it, and what is made of its answer.

`prefix` and `front` are for tests alone, which become another user, or hold the table in a hold that they made worse.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any

from tidegate.doctor.escapes.machine import MARK
from tidegate.model.errors import StartError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PREFIX = "tidegate-escapes-"
PLACE = "/var/tmp"  # not /tmp, which a task has its own of
PATIENCE = 400  # seconds
KEEPER = """\
import json, sys
wishes = json.loads(sys.argv[1])
sys.path[:] = wishes["path"]
from tidegate.doctor.escapes.keeper import main
main(wishes)
"""


def attempt(
    hold: str,
    *,
    rows: Sequence[str] | None = None,
    selftest: bool = True,
    prefix: Sequence[str] = (),
    front: Sequence[str] = (),
    container: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Have the table tried in this hold and return the keeper's answer (keeper.py). Nothing is left.

    `container` is for the holds of containers: `engine`, `image`, `transport` (the default one where it is left out)
    with the `state` folder it needs, and what of this machine is shown in it, as `shares`. The rows are those of
    `hold`.

    Raises:
        StartError: where no hold can be had here, or the trial itself failed.
    """
    sweep()
    base = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=PLACE)
    wishes = {"path": [entry for entry in sys.path if entry], "base": base, "hold": hold, "selftest": selftest}
    if rows is not None:
        wishes["rows"] = list(rows)
    if container is not None:
        wishes["container"] = dict(container)
    if front:
        wishes["front"] = list(front)
    words = [*(word.replace("{base}", base) for word in prefix), sys.executable, "-I", "-c", KEEPER, json.dumps(wishes)]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        raise StartError("the trial did not end in time", code="escapes") from None
    finally:
        shutil.rmtree(base, ignore_errors=True)
    if done.returncode or not done.stdout:
        raise StartError(f"the trial failed: {done.stderr.strip()[-500:]}", code="escapes")
    answer: dict[str, Any] = json.loads(done.stdout)
    if "unready" in answer:
        from tidegate.holds.messages import explain

        raise explain("unshare", answer["errno"], answer["unready"])
    return answer


def sweep() -> None:
    """Remove what trials that were killed have left: folders, and canaries where every program has its sockets."""
    for path in glob.glob(f"/tmp/{MARK}*.sock") + glob.glob(f"/run/{MARK}*.sock"):
        pid = os.path.basename(path).removeprefix(MARK).removesuffix(".sock")
        if pid.isdigit() and not os.path.exists(f"/proc/{pid}"):
            with contextlib.suppress(OSError):
                os.unlink(path)  # another user's stays
    for name in os.listdir(PLACE):
        pid = name.removeprefix(PREFIX).partition("-")[0]
        if name.startswith(PREFIX) and pid.isdigit() and not os.path.exists(f"/proc/{pid}"):
            shutil.rmtree(os.path.join(PLACE, name), ignore_errors=True)
