"""Numbers of the system calls that a hold makes or filters, for the two machines it knows.

Kernel sources: arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h (arm64). Since number
424 both tables are one. A test compares them with the headers of the machine it runs on.

What it does not do: no 32-bit tables. A call of another architecture is killed before its number is looked at.
"""

from __future__ import annotations

AUDIT_ARCH_X86_64 = 0xC000003E  # linux/audit.h: EM_X86_64 | __AUDIT_ARCH_64BIT | __AUDIT_ARCH_LE
AUDIT_ARCH_AARCH64 = 0xC00000B7
X32_BIT = 0x40000000  # asm/unistd.h, __X32_SYSCALL_BIT

_COMMON = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "pidfd_open": 434,
    "clone3": 435,
    "close_range": 436,
    "openat2": 437,
    "pidfd_getfd": 438,
    "mount_setattr": 442,
    "landlock_create_ruleset": 444,
    "landlock_restrict_self": 446,
    "open_tree_attr": 467,
}

_X86_64 = _COMMON | {
    "ioctl": 16,
    "socket": 41,
    "connect": 42,
    "sendto": 44,
    "sendmsg": 46,
    "listen": 50,
    "socketpair": 53,
    "setsockopt": 54,
    "getsockopt": 55,
    "clone": 56,
    "syslog": 103,
    "capset": 126,
    "pivot_root": 155,
    "prctl": 157,
    "mount": 165,
    "umount2": 166,
    "init_module": 175,
    "delete_module": 176,
    "kexec_load": 246,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "unshare": 272,
    "perf_event_open": 298,
    "open_by_handle_at": 304,
    "prlimit64": 302,
    "sendmmsg": 307,
    "setns": 308,
    "process_vm_readv": 310,
    "finit_module": 313,
    "seccomp": 317,
    "kexec_file_load": 320,
    "bpf": 321,
    "userfaultfd": 323,
}

_AARCH64 = _COMMON | {
    "ioctl": 29,
    "umount2": 39,
    "mount": 40,
    "pivot_root": 41,
    "capset": 91,
    "unshare": 97,
    "kexec_load": 104,
    "init_module": 105,
    "delete_module": 106,
    "syslog": 116,
    "prctl": 167,
    "socket": 198,
    "socketpair": 199,
    "listen": 201,
    "connect": 203,
    "sendto": 206,
    "setsockopt": 208,
    "getsockopt": 209,
    "sendmsg": 211,
    "add_key": 217,
    "request_key": 218,
    "keyctl": 219,
    "clone": 220,
    "perf_event_open": 241,
    "open_by_handle_at": 265,
    "prlimit64": 261,
    "setns": 268,
    "sendmmsg": 269,
    "process_vm_readv": 270,
    "finit_module": 273,
    "seccomp": 277,
    "bpf": 280,
    "userfaultfd": 282,
    "kexec_file_load": 294,
}

TABLES: dict[str, tuple[int, dict[str, int]]] = {
    "x86_64": (AUDIT_ARCH_X86_64, _X86_64),
    "aarch64": (AUDIT_ARCH_AARCH64, _AARCH64),
}
"""Machine, as uname says it -> (architecture as seccomp sees it, name -> number)."""
