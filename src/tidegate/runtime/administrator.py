"""The administrator's policy of this machine: /etc/tidegate/policy.yaml (POL-8).

Its denies stay whatever another layer says, and `locked` forbids what nobody below it may choose: `open`,
`trust-folder`, `no-selftest`, `audit`, or, as `policy`, any host but its own.

It is the administrator's only where nobody else can write it: the file and its folder are root's, and no group or other
may change them. Anything else stops the start, since leaving it aside would lift a lock.
"""

from __future__ import annotations

import errno
import os
import stat

from tidegate.model.errors import StartError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.policy.layers import PolicyLayer

FOLDER = "/etc/tidegate"
FILE = f"{FOLDER}/policy.yaml"
_CODE = "administrator"
_BYTES = 8 * 1024 * 1024  # POL-0


def administrator_layer() -> PolicyLayer | None:
    """Return what the administrator's policy says, None where there is none.

    Raises:
        StartError: when it cannot be read, or someone else could have written it.
        UsageError: when its text is wrong.
    """
    data = read_administrators(FILE, "policy")
    if data is None:
        return None
    from tidegate.model.rule import Layer
    from tidegate.policy.loader import load_policy

    return load_policy(data, FILE, Layer.ADMINISTRATOR)


def read_administrators(path: str, what: str) -> bytes | None:
    """Return the bytes of a file in the administrator's folder, None where there is none; `what` is what it is to them.

    Raises:
        StartError: when it cannot be read, or someone else could have written it.
    """
    whose = f"the administrator's {what}"
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        why = "it is a symbolic link" if error.errno == errno.ELOOP else os.strerror(error.errno or errno.EIO)
        fix = "ask who administers this machine"
        raise StartError(f"{whose} {path} cannot be read: {why}", fix=fix, code=_CODE) from None
    try:
        folder = os.path.dirname(path)
        _require_roots_own(whose, folder, os.stat(folder), stat.S_ISDIR)
        _require_roots_own(whose, path, os.fstat(fd), stat.S_ISREG)
        with open(fd, "rb", closefd=False) as file:
            data = file.read(_BYTES + 1)
    finally:
        os.close(fd)
    if len(data) > _BYTES:
        raise StartError(f"{whose} {path} is larger than 8 MiB", fix="write less", code=_CODE)
    return data


def refuse_what_is_locked(name: str, shown: str, layer: PolicyLayer | None = None) -> None:
    """Do nothing, unless the administrator locked `name` (one of layers.LOCKS); `shown` is what was asked for.

    Raises:
        StartError: when it is locked, or as `administrator_layer`, which is asked where no layer is given.
    """
    layer = layer or administrator_layer()
    if layer is not None and name in layer.locks:
        raise StartError(
            f"the administrator's policy {FILE} forbids {shown}", fix="ask who administers this machine", code=_CODE
        )


def _require_roots_own(whose: str, path: str, found: os.stat_result, kind: Callable[[int], bool]) -> None:
    if not kind(found.st_mode):
        what, fix = "is not what it should be", "make it a file in a folder"
    elif found.st_uid:
        what, fix = f"belongs to uid {found.st_uid}", f"chown root {path}"
    elif found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        what, fix = "can be changed by others than root", f"chmod go-w {path}"
    else:
        return
    raise StartError(f"{whose}: {path} {what}", fix=fix, code=_CODE)
