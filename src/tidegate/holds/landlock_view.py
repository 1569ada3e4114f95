"""What a task sees in the hold `landlock`: the plan of a view, as levels and as Landlock's rules (HLD-13 to HLD-15).

Paths cannot be covered, only refused: what is hidden, the machine's /tmp and /run, and all devices but the harmless
ones, have no right at all, and their names and sizes can still be asked for (stat(2) is not Landlock's affair).
/proc and /sys can be read and not written. A folder above something hidden cannot be listed.
"""

from __future__ import annotations

import os

from tidegate.holds import landlock
from tidegate.holds.carve import NOTHING, READ, WRITE, Levels
from tidegate.holds.device import NODES
from tidegate.holds.kernel_files import INTERFACES, SYS_MASKED
from tidegate.holds.layers import readonly_at
from tidegate.holds.own_folder import TRUST
from tidegate.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.holds.plan import Plan

_RIGHTS = {READ: landlock.READ, WRITE: landlock.READ | landlock.CHANGE}


class View(Value):
    """`rules` are paths and Landlock's rights; `folder` is the task's own, `hidden` what it must not see."""

    levels: Levels
    rules: tuple[tuple[str, int], ...]
    folder: str
    hidden: tuple[str, ...]


def make_view(plan: Plan, folder: str) -> View:
    """Decide the view of one task, whose own folder this is."""
    levels = levels_of(plan, folder)
    rules = [(path, _RIGHTS[level]) for path, level in levels.rules(names_in)]
    rules += [(os.path.realpath(f"/dev/{name}"), landlock.DEVICE) for name in (*NODES, "ptmx")]
    looked_at = landlock.READ_FILE | landlock.READ_DIR
    rules += [(one.path, looked_at if one.readonly else looked_at | landlock.DEVICE) for one in plan.devices]
    return View(levels, tuple(rules), folder, plan.hidden)


def levels_of(plan: Plan, own: str) -> Levels:
    """The levels of a plan. What is hidden is said last: nothing gives it back."""
    said = {step.path: step.readonly for step in plan.steps}
    found = {"/": READ if plan.strict else WRITE}
    found |= {path: READ if readonly else WRITE for path, readonly in said.items()}
    found |= {"/proc": READ, "/sys": READ, "/dev": NOTHING}
    found |= dict.fromkeys(SYS_MASKED, NOTHING)
    for mount in plan.mounts:
        if mount.kind == "proc" and mount.point != "/proc" and not mount.point.startswith("/proc/"):
            found[mount.point] = NOTHING
        elif mount.kind in INTERFACES and not mount.point.startswith(("/sys/", "/dev")):
            found[mount.point] = READ
    found |= dict.fromkeys(plan.replaced, NOTHING)
    for one in plan.bound:
        readonly = one.readonly or readonly_at(one.path, said, strict=plan.strict)
        found[one.path] = READ if readonly else WRITE
    for path, readonly in said.items():  # inside what is bound, unless that is read-only whole
        around = [one for one in plan.bound if path.startswith(one.path + "/")]
        if around:
            found[path] = READ if readonly or any(one.readonly for one in around) else WRITE
    # Names that lead to what is protected, and sockets of the machine: not to be removed, replaced or renamed.
    links = [os.path.join(folder, name) for folder, name in plan.pins]
    for path in (*(link for link in links if os.path.islink(link)), *plan.sockets):
        found[path] = min(READ, found.get(path, READ))
    found |= dict.fromkeys(plan.hidden, NOTHING)
    found[own] = WRITE
    found[f"{own}/{TRUST}"] = READ
    return Levels(found)


def names_in(folder: str) -> list[str]:
    """The paths of what is in a folder, without symlinks; none for a file, or where this user may not look."""
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries if not entry.is_symlink()]
    except OSError:
        return []
