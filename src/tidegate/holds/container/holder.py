"""The container that has a task's network before the task is there: an image of one file of a few hundred bytes.

Its only program tries to make each socket that the filter forbids, and ends at once where it gets one; else it sleeps
for good. So a holder that still runs when it is looked at has proven, in a real container of this engine, that the
filter, which the worker gets too, is the one that was asked for (HLD-11, HLD-13). It has no shell, no other file and no
right.

The program is machine code, because the image must not come from a registry and must run without a C library, an
interpreter or anything of the worker's image (docs/decisions/0012-a-holder-of-one-file.md). Each instruction stands
with what it does. Calls as in syscall(2).
"""

from __future__ import annotations

import hashlib
import io
import struct
import tarfile

from tidegate.holds import linux
from tidegate.holds.container.elf_program import elf_program
from tidegate.holds.container.engine import LABEL_PART, Engine
from tidegate.holds.messages import unknown_machine
from tidegate.holds.selftest import FORBIDDEN_SOCKETS

NAME = "tidegate-holder"
PART = "holder"
PROGRAM = "/holder"

_END = struct.pack("<i", -1)

# Both go through the table behind them: three numbers a socket, until a family of -1.
_CODE = {
    "x86_64": bytes.fromhex(
        "488d1d34000000"  # lea  rbx, [rip+52]         the table
        "8b3b"  # next:    mov  edi, [rbx]            family
        "83ffff"  # cmp  edi, -1
        "7424"  # je   sleep
        "8b7304"  # mov  esi, [rbx+4]                  type
        "8b5308"  # mov  edx, [rbx+8]                  protocol
        "b829000000"  # mov  eax, 41                   socket
        "0f05"  # syscall
        "4885c0"  # test rax, rax
        "7906"  # jns  leak
        "4883c30c"  # add  rbx, 12
        "ebe1"  # jmp  next
        "bf01000000"  # leak:    mov  edi, 1
        "b83c000000"  # mov  eax, 60                   exit
        "0f05"  # syscall
        "b822000000"  # sleep:   mov  eax, 34          pause
        "0f05"  # syscall
        "ebf7"  # jmp  sleep
    ),
    "aarch64": struct.pack(
        "<23I",
        0x100002F3,  # adr  x19, table
        0xB9400260,  # next:    ldr  w0, [x19]         family
        0x3100041F,  # cmn  w0, #1
        0x54000180,  # b.eq sleep
        0xB9400661,  # ldr  w1, [x19, #4]              type
        0xB9400A62,  # ldr  w2, [x19, #8]              protocol
        0xD28018C8,  # mov  x8, #198                   socket
        0xD4000001,  # svc  #0
        0xF100001F,  # cmp  x0, #0
        0x5400006A,  # b.ge leak
        0x91003273,  # add  x19, x19, #12
        0x17FFFFF6,  # b    next
        0xD2800020,  # leak:    mov  x0, #1
        0xD2800BA8,  # mov  x8, #93                    exit
        0xD4000001,  # svc  #0
        0xD2800000,  # sleep:   mov  x0, #0
        0xD2800001,  # mov  x1, #0
        0xD2800002,  # mov  x2, #0
        0xD2800003,  # mov  x3, #0
        0xD2800004,  # mov  x4, #0
        0xD2800928,  # mov  x8, #73                    ppoll of nothing, without end
        0xD4000001,  # svc  #0
        0x17FFFFF9,  # b    sleep
    ),
}


def program(machine: str = linux.MACHINE) -> bytes:
    """The program of the holder, as an ELF file for this machine.

    Raises:
        StartError: for a machine that there is no code for.
    """
    if machine not in _CODE:
        raise unknown_machine()
    table = b"".join(struct.pack("<iii", family, kind, protocol) for _, family, kind, protocol in FORBIDDEN_SOCKETS)
    code = _CODE[machine] + table + _END
    return elf_program(machine, code)


def image_name() -> str:
    """The image's name; another program has another."""
    return f"{NAME}:{hashlib.sha256(program()).hexdigest()[:12]}"


def ensure_image(engine: Engine) -> str:
    """Make the image where this engine does not have it, and return its name.

    Raises:
        StartError: when the engine cannot.
    """
    name = image_name()
    if not engine.has_image(name):
        make_image(engine)
    return name


def make_image(engine: Engine) -> None:
    """Make the image, whether it is there or not.

    Raises:
        StartError: when the engine cannot.
    """
    engine.import_image(image_name(), image_tar(), (f"LABEL {LABEL_PART}={PART}",))


def image_tar() -> bytes:
    """What the image holds, as the tar file that engines import."""
    content = program()
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as tar:
        for folder in ("dev", "etc", "proc", "sys"):
            one = tarfile.TarInfo(folder)
            one.type, one.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(one)
        file = tarfile.TarInfo(PROGRAM.strip("/"))
        file.size, file.mode = len(content), 0o755
        tar.addfile(file, io.BytesIO(content))
    return written.getvalue()
