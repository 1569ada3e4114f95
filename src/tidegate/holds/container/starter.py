"""What a worker's container runs first: a program that hands its connections to the watcher, then becomes the init.

An engine's filter cannot hand a call to somebody who answers for it: docker before 23 drops the place where that one
would be told of it (`listenerPath`), and other runtimes know none. So the container does it itself, before its first
instruction that is not ours (docs/decisions/0016-a-starter-in-the-container.md):

    connect to the watcher's socket, which is mounted beside this program
    the filter of seccomp.watched, with a listener for its calls; the engine's own filter stays in force
    send that listener to the watcher, close it, and wait for one byte: somebody answers from now on
    connect(-1), a trial: EBADF is the watcher's answer, ENOSYS says that nobody gives one
    execute what the arguments name, as the same process, so that PID 1 of the container is behind it, too

Whatever fails ends the container before the task's first instruction, with one line and status 125. There is no way
out of a filter, so what stays inside needs no look: the program is the watcher's counterpart in watching.py.

Machine code for the reasons of holder.py: in the worker's image there may be nothing that it could use. The address of
each datum is that of `_data`. Each group of instructions stands with what it does; calls as in syscall(2).
"""

from __future__ import annotations

import os
import struct

from tidegate.holds import linux, seccomp
from tidegate.holds.container.elf_program import BASE, HEADERS, elf_program
from tidegate.holds.messages import unknown_machine

PROGRAM, SOCKET, INIT = "start", "socket", "init"
"""What the container has in the starter's folder: this program, the watcher's socket, and the init."""
TAKEN = b"w"
"""What goes both ways: with the listener, and back once somebody answers."""
LISTENER = 9
"""The descriptor that the listener has while it is sent: the message was written before the kernel gave it one."""
FAILED = 125
SAYS = (
    b"tidegate: the connections of this container cannot be watched: its processes are not seen from here, or its "
    b"runtime or kernel has no listeners for system calls (Linux 5.9); try --container-option runtime=runc\n"
)

# Offsets of what is behind the code.
_ADDRESS, _FILTER, _MESSAGE, _PART, _BESIDE, _LENGTH, _TEXT = 0, 112, 128, 184, 200, 224, 232
_UNIX_LENGTH = 110
_CODE = {
    "x86_64": bytes.fromhex(
        "4c8d354d010000 4989e7"  # r14: the data; r15: where argc is, then argv
        "bf01000000 be05000800 31d2 b829000000 0f05"  # socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)
        "85c0 0f8809010000 4189c4"  # negative: fail; r12: the socket
        "89c7 4c89f6 ba6e000000 b82a000000 0f05"  # connect(r12, data + 0, 110)
        "85c0 0f85ed000000"  # not 0: fail
        "bf26000000 be01000000 31d2 4531d2 4531c0 b89d000000 0f05"  # prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        "85c0 0f85cc000000"  # not 0: fail
        "bf01000000 be28000000 498d5670 b83d010000 0f05"  # seccomp(SET_MODE_FILTER, NEW_LISTENER | WAIT_KILLABLE, +112)
        "85c0 791d"  # not negative: it listens
        "bf01000000 be08000000 498d5670 b83d010000 0f05"  # seccomp(SET_MODE_FILTER, NEW_LISTENER, data + 112)
        "85c0 0f8896000000"  # negative: fail
        "89c7 be09000000 ba00000800 4189c5 b824010000 0f05"  # listens: r13: the listener; dup3(r13, 9, O_CLOEXEC)
        "83f809 757b"  # not 9: fail
        "4489ef b803000000 0f05"  # close(r13)
        "4489e7 498db680000000 ba00400000 b82e000000 0f05"  # sendmsg(r12, data + 128, MSG_NOSIGNAL)
        "83f801 7556"  # not 1: fail
        "bf09000000 b803000000 0f05"  # close(9)
        "4489e7 488d7424c0 ba01000000 31c0 0f05"  # read(r12, stack - 64, 1)
        "83f801 7534"  # not 1: fail
        "83cfff 31f6 31d2 b82a000000 0f05"  # connect(-1, 0, 0)
        "83f8f7 7521"  # not -EBADF: fail
        "4489e7 b803000000 0f05"  # close(r12)
        "498b07 498b7f10 498d7710 498d54c710"  # argc; argv[1], argv + 1, envp
        "b83b000000 0f05"  # execve of them
        "bf02000000 498db6e8000000 498b96e0000000 b801000000 0f05"  # fail: write(2, data + 232, [data + 224])
        "bf7d000000 b8e7000000 0f05"  # exit_group(125)
    ),
    "aarch64": struct.pack(
        "<86I",
        *(0x10000AD3, 0x910003F4),  # x19: the data; x20: where argc is, then argv
        *(0xD2800020, 0xD28000A1, 0xF2A00101, 0xD2800002, 0xD28018C8, 0xD4000001),  # socket, as above
        *(0xB7F808C0, 0xAA0003F5),  # negative: fail; x21: the socket
        *(0xAA1303E1, 0xD2800DC2, 0xD2801968, 0xD4000001, 0xB5000800),  # connect; not 0: fail
        *(0xD28004C0, 0xD2800021, 0xD2800002, 0xD2800003, 0xD2800004, 0xD28014E8, 0xD4000001, 0xB5000700),  # prctl
        *(0xD2800020, 0xD2800501, 0x9101C262, 0xD28022A8, 0xD4000001, 0xB6F800E0),  # seccomp; not negative: listens
        *(0xD2800020, 0xD2800101, 0x9101C262, 0xD28022A8, 0xD4000001, 0xB7F80580),  # seccomp; negative: fail
        *(0xAA0003F6, 0xD2800121, 0xD2A00102, 0xD2800308, 0xD4000001),  # listens: x22: the listener; dup3
        *(0xF100241F, 0x540004A1),  # not 9: fail
        *(0xAA1603E0, 0xD2800728, 0xD4000001),  # close(x22)
        *(0xAA1503E0, 0x91020261, 0xD2880002, 0xD2801A68, 0xD4000001, 0xF100041F, 0x54000361),  # sendmsg; not 1: fail
        *(0xD2800120, 0xD2800728, 0xD4000001),  # close(9)
        *(0xAA1503E0, 0xD10103E1, 0xD2800022, 0xD28007E8, 0xD4000001, 0xF100041F, 0x54000221),  # read; not 1: fail
        *(0x92800000, 0xD2800001, 0xD2800002, 0xD2801968, 0xD4000001),  # connect(-1, 0, 0)
        *(0xB100241F, 0x54000141),  # not -EBADF: fail
        *(0xAA1503E0, 0xD2800728, 0xD4000001),  # close(x21)
        *(0xF9400283, 0xF9400A80, 0x91004281, 0x8B030C22, 0xD2801BA8, 0xD4000001),  # execve(argv[1], argv + 1, envp)
        *(0xD2800040, 0x9103A261, 0xF9407262, 0xD2800808, 0xD4000001),  # fail: write
        *(0xD2800FA0, 0xD2800BC8, 0xD4000001),  # exit_group(125)
    ),
}


def place() -> str:
    """A folder for one container to have it in, of a name that nobody knows before.

    An engine follows the links of an image to where a mount goes. So an image that knew the name could have a link to
    it where the workspace is mounted, and a program in the workspace would be the first of the container.
    """
    return f"/.tidegate-{os.urandom(8).hex()}"


def program(folder: str, machine: str = linux.MACHINE) -> bytes:
    """The program, as an ELF file for this machine, for this folder. Its arguments are what it executes.

    Raises:
        StartError: for a machine that there is no code for.
    """
    if machine not in _CODE:
        raise unknown_machine()
    code = _CODE[machine]
    return elf_program(machine, code + _data(folder, machine, BASE + HEADERS + len(code)))


def _data(folder: str, machine: str, at: int) -> bytes:
    """What the code works on, where it is mapped at this address."""
    calls = seccomp.watched(machine)
    behind = at + _TEXT + len(SAYS)
    behind += -behind % 8
    parts = {
        _ADDRESS: b"\1\0" + f"{folder}/{SOCKET}".encode().ljust(_UNIX_LENGTH - 2, b"\0"),
        _FILTER: struct.pack("<HxxxxxxQ", len(calls) // 8, behind),  # struct sock_fprog
        # struct msghdr: name and length, parts and number, what is beside and length, flags
        _MESSAGE: struct.pack("<QIxxxxQQQQixxxx", 0, 0, at + _PART, 1, at + _BESIDE, 24, 0),
        _PART: struct.pack("<QQ", behind + len(calls), len(TAKEN)),  # struct iovec
        _BESIDE: struct.pack("<Qiiixxxx", 20, 1, 1, LISTENER),  # struct cmsghdr: SOL_SOCKET, SCM_RIGHTS
        _LENGTH: struct.pack("<Q", len(SAYS)),
        _TEXT: SAYS,
        behind - at: calls + TAKEN,
    }
    found = bytearray()
    for offset, content in parts.items():
        found += bytes(offset - len(found)) + content
    return bytes(found)
