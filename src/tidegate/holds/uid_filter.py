"""The calls that the hold `uid` refuses beside those of every hold: no marks on files that outlive the task.

What a task writes in its workspace is, on the disk, the workspace owner's (idmap.py). A program with the set-user-id
bit there would give its owner's rights to whoever runs it outside, and file capabilities even more. So no mode with
such a bit is taken, no extended attribute is set, and what hides its mode behind a pointer is unknown
(as systemd's RestrictSUIDSGID= does). Mounts of the task ignore those bits, but the disk would keep them.

A filter of its own, put on before the other one: the kernel asks both, and the sterner answer counts. seccomp(2).
"""

from __future__ import annotations

import errno

from tidegate.holds import linux
from tidegate.holds.bpf import ALLOW, ERRNO, NUMBER, Program, argument

MARKS = 0o6000
"""S_ISUID and S_ISGID."""
# Where the mode is: chmod(2), mknod(2), open(2). Numbers: see syscalls.py; None where a machine lacks the call.
MODES: dict[str, tuple[int | None, int | None, int]] = {
    "chmod": (90, None, 1),
    "fchmod": (91, 52, 1),
    "fchmodat": (268, 53, 2),
    "fchmodat2": (452, 452, 2),
    "creat": (85, None, 1),
    "open": (2, None, 2),
    "openat": (257, 56, 3),
    "mknod": (133, None, 1),
    "mknodat": (259, 33, 2),
}
CREATES = 0o100 | 0o20000000  # O_CREAT, __O_TMPFILE: the mode counts with these
REFUSED: dict[str, tuple[int, int, int]] = {
    "setxattr": (188, 5, errno.EOPNOTSUPP),
    "lsetxattr": (189, 6, errno.EOPNOTSUPP),
    "fsetxattr": (190, 7, errno.EOPNOTSUPP),
    "setxattrat": (463, 463, errno.ENOSYS),
    "openat2": (437, 437, errno.ENOSYS),
    "file_setattr": (469, 469, errno.ENOSYS),
}


def program(machine: str = linux.MACHINE) -> bytes:
    """The filter for this machine; the other filter looks at the architecture.

    Raises:
        KeyError: for a machine whose numbers are not known.
    """
    column = {"x86_64": 0, "aarch64": 1}[machine]
    p = Program()
    p.load(NUMBER)
    numbers = {name: where[column] for name, where in MODES.items() if where[column] is not None}
    for name, number in numbers.items():
        p.if_equal(number or 0, name)
    for codes in REFUSED.values():
        p.if_equal(codes[column], f"refused {codes[2]}")
    p.give(ALLOW)
    for name in numbers:
        p.label(name)
        at = MODES[name][2]
        if name in ("open", "openat"):
            p.load(argument(at - 1))
            p.if_any_bit(CREATES, None, "allow")
        p.load(argument(at))
        p.if_any_bit(MARKS, "refused 1", "allow")
    p.label("allow")
    p.give(ALLOW)
    for code in sorted({errno.EPERM, *(codes[2] for codes in REFUSED.values())}):
        p.label(f"refused {code}")
        p.give(ERRNO | code)
    return p.assemble()
