"""Turns the machine's tree into the task's, in place and from inside its mount namespace.

The order is the point. Nothing leaks in or out of the namespace from the first line on; nothing on the machine's file
systems is a device or set-user-id any more. Then the kernel's own files. Then what is protected, still in
the machine's tree, so that a folder cloned afterwards brings its masks along, whatever is bound where: first what is
covered, then the steps of layers.py, outermost first. Last the task's
own folders, and in them what is bound back. The machine's /tmp, /run and /dev stay below, out of reach: a mount
on top of them cannot be taken away by the task, nor in a namespace that it makes (they are locked there).

`private` and not `slave`: what is mounted on the machine later, a USB stick as well as a /proc, would appear inside
without any of this having been done to it.
"""

from __future__ import annotations

import errno
import os
import stat

from tidegate.holds import device, kernel_files, linux, mounts, name_files
from tidegate.holds.masks import WORKSHOP, Masks
from tidegate.holds.mountinfo import is_within
from tidegate.holds.pins import hold_in_place
from tidegate.model.errors import StartError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.holds.name_files import NameFile
    from tidegate.holds.plan import Bound, Plan

_MOVED = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_MODES = {"/run": "755", "/var/run": "755"}


def build(plan: Plan, late: Callable[[], tuple[NameFile, ...]] = tuple) -> None:
    """Make the view. Runs once, as PID 1 of the new namespaces with the capabilities they came with.

    `late` waits for files of ours that were not known when the plan was made.

    Raises:
        OSError: from the kernel, where a step fails; the process must not go on then.
        StartError: where the fix is known.
    """
    umask = os.umask(0o022)
    nodes = device.take_nodes(one.path.removeprefix("/dev/") for one in plan.devices)
    _read_only_devices(plan.devices, nodes)
    mounts.set_attributes("/", mounts.SAFE, recursive=True, propagation=linux.MS_PRIVATE)
    if plan.mapped:
        from tidegate.holds import idmap

        for mapped in plan.mapped:
            idmap.show(mapped)
    shared = mounts.clone(device.SHARED_MEMORY) if _reaches_shared_memory(plan) else -1
    masks = Masks()
    if shared >= 0:
        device.place(shared, device.SHARED_MEMORY)  # the workshop lies over /dev; what is protected must be in sight
    kernel_files.make_proc(masks)
    kernel_files.close_sys(masks)
    kernel_files.close_elsewhere(plan.mounts, masks)
    protect(plan, masks)
    trees = [(one.path, mounts.clone_real(one.path)) for one in plan.bound]
    for one, (_path, tree) in zip(plan.bound, trees, strict=True):
        if one.readonly:
            mounts.set_attributes(tree, mounts.READ_ONLY, recursive=True)
    named = name_files.take((*plan.names, *late()))
    device.make_dev(nodes)
    own_folders(plan)
    for path, tree in trees:
        device.place(tree, path)
    name_files.put(named)
    device.finish_dev()
    os.umask(umask)


def _reaches_shared_memory(plan: Plan) -> bool:
    """Whether anything that is bound or protected lies in the machine's /dev/shm."""
    paths = (*(step.path for step in plan.steps), *plan.hidden, *plan.sockets, *(one.path for one in plan.bound))
    return any(is_within(path, device.SHARED_MEMORY) for path in paths)


def protect(plan: Plan, masks: Masks) -> None:
    """Cover what is hidden and the sockets in sight, then make read-only what is read-only."""
    for path in plan.hidden:
        masks.cover(path, folder=stat.S_ISDIR(os.lstat(path).st_mode))
    for path in plan.sockets:
        try:
            masks.cover(path, folder=False)
        except OSError as error:
            if error.errno != errno.ENOENT:  # it has been closed and removed since it was listed
                raise
    hold_in_place(plan.pins, masks)  # before there are more mounts for its copies to bring along
    kept = {step.path: _as_it_is(step.path) for step in plan.steps if not step.readonly}
    if plan.strict:
        mounts.set_attributes("/", mounts.READ_ONLY, recursive=True)
        for ours in ("/proc", WORKSHOP):  # what is read-only of /proc is so by mounts of its own
            mounts.set_attributes(ours, 0, clear=mounts.READ_ONLY)
    for step in plan.steps:
        try:
            if step.readonly:
                mounts.protect_real(step.path)
            elif kept[step.path] >= 0:
                mounts.attach_real(kept[step.path], step.path)
        except OSError as error:
            if error.errno == errno.ENOENT and not step.readonly:
                continue  # somebody saves by renaming, as a shell its history: the name stays read-only
            if error.errno not in _MOVED:
                raise
            raise _moved(step.path) from error


def _as_it_is(path: str) -> int:
    """A clone of what a step will put back; -1 where it has been removed: it stays read-only."""
    try:
        return mounts.clone_real(path)
    except FileNotFoundError:
        return -1
    except OSError as error:
        if error.errno not in _MOVED:
            raise
        raise _moved(path) from error


def _moved(path: str) -> StartError:
    return StartError(
        f"{path} was moved or replaced while its protection was set up", fix="start it again", code="hold-moved"
    )


def own_folders(plan: Plan) -> None:
    """The task's own /tmp, /run and whatever else was replaced, and the folders that programs expect in them."""
    for path in plan.replaced:
        if path != device.SHARED_MEMORY:  # that one is there
            mode = _MODES.get(path, "1777" if path.endswith("tmp") else "755" if plan.owner else "700")
            mounts.attach_real(mounts.new_file_system("tmpfs", (("mode", mode),), mounts.SAFE), path)
    for path, bits in plan.made:
        os.makedirs(path, 0o755, exist_ok=True)
        os.chmod(path, bits)
        if plan.owner and not bits & 0o7:
            os.chown(path, plan.owner, plan.owner)
    for path, target in plan.links:
        if not os.path.lexists(path):
            os.symlink(target, path)


def _read_only_devices(devices: tuple[Bound, ...], nodes: list[tuple[str, int]]) -> None:
    trees = dict(nodes)
    for one in devices:
        if one.readonly:
            mounts.set_attributes(trees[one.path.removeprefix("/dev/")], mounts.READ_ONLY, recursive=True)
