"""The calls that the hold `uid` refuses beside those of every hold: no marks on files that outlive the task.

What a task writes in its workspace is, on the disk, the workspace owner's (idmap.py). A program with the set-user-id
bit there would give its owner's rights to whoever runs it outside, and file capabilities even more. So no mode with
such a bit is taken, no extended attribute is set, and what hides its mode behind a pointer is unknown
(as systemd's RestrictSUIDSGID= does). Mounts of the task ignore those bits, but the disk would keep them.

Socket options that lead around the table are refused, too (outward.py).

A filter of its own, put on before the other one: the kernel asks both, and the sterner answer counts. seccomp(2).
"""

from __future__ import annotations

import errno

from tidegate.holds import linux, outward
from tidegate.holds.bpf import ALLOW, ERRNO, NUMBER, Program, argument
from tidegate.holds.syscalls import TABLES

MARKS = 0o6000
"""S_ISUID and S_ISGID."""
# Where the mode is: chmod(2), mknod(2), open(2). aarch64 has the ones with `at` only.
MODES = {
    "chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1, "open": 2, "openat": 3, "mknod": 1,
    "mknodat": 2,
}  # fmt: skip
CREATES = 0o100 | 0o20000000  # O_CREAT, __O_TMPFILE: the mode counts with these
REFUSED = {
    "setxattr": errno.EOPNOTSUPP, "lsetxattr": errno.EOPNOTSUPP, "fsetxattr": errno.EOPNOTSUPP,
    "setxattrat": errno.ENOSYS, "openat2": errno.ENOSYS, "file_setattr": errno.ENOSYS,
}  # fmt: skip


def program(machine: str = linux.MACHINE) -> bytes:
    """The filter for this machine; the other filter looks at the architecture.

    Raises:
        KeyError: for a machine whose numbers are not known.
    """
    _architecture, numbers = TABLES[machine]
    taken = {name: at for name, at in MODES.items() if name in numbers}
    p = Program()
    p.load(NUMBER)
    for name in taken:
        p.if_equal(numbers[name], name)
    for name, code in REFUSED.items():
        p.if_equal(numbers[name], f"refused {code}")
    p.if_equal(numbers["setsockopt"], "setsockopt")
    p.give(ALLOW)
    p.label("setsockopt")
    p.load(argument(1))
    outward.tell_levels(p)
    p.give(ALLOW)
    outward.refuse(p, f"refused {errno.EPERM}")
    for name, at in taken.items():
        p.label(name)
        if name in ("open", "openat"):
            p.load(argument(at - 1))
            p.if_any_bit(CREATES, None, "allow")
        p.load(argument(at))
        p.if_any_bit(MARKS, f"refused {errno.EPERM}", "allow")
    p.label("allow")
    p.give(ALLOW)
    for code in sorted({errno.EPERM, *REFUSED.values()}):
        p.label(f"refused {code}")
        p.give(ERRNO | code)
    return p.assemble()
