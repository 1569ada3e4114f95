"""The image of the relay (relay/), made of this machine's own Python: no registry is asked (HLD-4).

What goes in is found out by running the Python that runs us: which modules and which shared libraries it has loaded
once it has done what the relay does. So the image holds an interpreter, TLS, the program, and no shell, no package
manager and no other program.

    /usr/bin/python3, /usr/lib*/python3.N/...   the interpreter and the modules it needs
    /usr/lib/tidegate/*.so.N                    the libraries of both, and the loader where the interpreter wants it
    /relay/__main__.py                          what the interpreter is told to run
    /relay/tidegate/holds/container/relay/*.py  the program: its modules under the names that they have here
    /relay/tidegate/{holds,model}/*.py          what makes and tries the rules that capture (relay/rules.py)

Rules of the file: the same Python and the same program give the same bytes. The tag says which program is inside, so
that a newer tidegate never takes an older relay. An image of somebody else (Containerfile in this folder) does as well:
nothing is asked of it but `python3` on its PATH and /relay.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from typing import Any

from tidegate.holds.container import elf, relay
from tidegate.model.errors import StartError

NAME = "localhost/tidegate-relay"
PROGRAM = "/relay"
_MAIN = "__main__.py"
LIBRARIES = "/usr/lib/tidegate"
COMMAND = ("python3", "-I", "-S", "-B", PROGRAM)
CHANGES = (
    f"ENV LD_LIBRARY_PATH={LIBRARIES}",
    "USER 65534:65534",
    f'ENTRYPOINT ["/usr/bin/{COMMAND[0]}", "-I", "-S", "-B", "{PROGRAM}"]',
    "LABEL tidegate.image=relay",
)
"""What the engine is told about the image: see `COMMAND` for how tidegate starts it, whatever the image says."""

SHARED = (
    *("holds/bpf", "holds/capture", "holds/capture_proof", "holds/inside", "holds/linux", "holds/netfilter"),
    *(
        "holds/netlink",
        "holds/network",
        "holds/nft",
        "holds/outward",
        "holds/routes",
        "holds/seccomp",
        "holds/selftest",
    ),
    *("holds/syscalls", "model/caught", "model/errors", "model/value"),
)
"""Modules of ours that the relay runs, too, in the words of a path below `tidegate`."""

_NSS = ("libnss_files.so.2", "libnss_dns.so.2", "libresolv.so.2")  # of a glibc before 2.34, loaded by name
_OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_PATIENCE = 60.0
_LOOK = """
import encodings.ascii, encodings.idna, encodings.latin_1, encodings.utf_8, json, os, runpy, socket, ssl, sys
runpy.run_path(sys.argv[1], run_name="relay")
sys.path.insert(0, sys.argv[1])
socket.getaddrinfo("localhost", 1)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname="localhost")
import tidegate.holds.capture, tidegate.holds.capture_proof
json.dump({
    "modules": sorted({module.__file__ for module in sys.modules.values() if getattr(module, "__file__", None)}),
    "maps": sorted({line.split(None, 5)[5].strip() for line in open("/proc/self/maps") if line.count("/")}),
    "library": os.path.dirname(os.path.abspath(os.__file__)),
    "where": "usr/%s/python%d.%d" % (getattr(sys, "platlibdir", "lib"), *sys.version_info[:2]),
}, sys.stdout)
"""


def default_image() -> str:
    """Return the name of the image with this relay inside."""
    return f"{NAME}:{_digest()[:12]}"


def program() -> dict[str, bytes]:
    """Return what is in the folder of the program: path inside, and content."""
    here = os.path.dirname(relay.__file__)
    place = relay.__name__.replace(".", "/")
    files = {f"{place}/{name}": _read(os.path.join(here, name)) for name in os.listdir(here) if name.endswith(".py")}
    files[_MAIN] = files.pop(f"{place}/{_MAIN}")
    for module in SHARED:
        files[f"tidegate/{module}.py"] = _read(os.path.join(_OURS, f"{module}.py"))
    return dict(sorted(files.items()))


def _digest() -> str:
    digest = hashlib.sha256()
    for path, content in program().items():
        digest.update(f"{path} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def make_tar(python: str = "") -> bytes:
    """Return the image as one tar file. `python` is the interpreter to take, this one's where none is named.

    Raises:
        StartError: when this Python is none that can be taken along.
    """
    python = os.path.realpath(python or sys.executable)
    try:
        with tempfile.TemporaryDirectory(prefix="tidegate-relay-") as folder:
            write_program(folder)
            found = _look(python, folder)
            return _pack(_files(python, found, folder))
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise StartError(
            f"no image of the relay can be made of {python}: {error}",
            fix="build one from holds/container/Containerfile, and name it with --relay-image",
            code="relay-image",
        ) from None


def write_program(folder: str) -> None:
    """Write the program into a folder, which Python then runs by its name."""
    for path, content in program().items():
        os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
        with open(os.path.join(folder, path), "wb") as file:
            file.write(content)


def _look(python: str, folder: str) -> Any:
    argv = [python, "-I", "-S", "-B", "-c", _LOOK, folder]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_PATIENCE)
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise ValueError(said[-1] if said else f"it ended with {done.returncode}")
    return json.loads(done.stdout)


def _files(python: str, found: Any, folder: str) -> dict[str, bytes]:
    """What the image has: path without the first slash, and content."""
    library, where = found["library"], found["where"]
    files = {
        "usr/bin/python3": _read(python),
        "etc/nsswitch.conf": b"hosts: files dns\n",
        **{f"{PROGRAM[1:]}/{path}": content for path, content in program().items()},
    }
    for path in found["modules"]:
        if path.startswith(folder + "/"):
            continue
        inside = path[len(library) + 1 :] if path.startswith(library + "/") else f"lib-dynload/{os.path.basename(path)}"
        files[f"{where}/{inside}"] = content = _read(path)
        if path.endswith(".py"):
            folder, name = os.path.split(f"{where}/{inside}")
            files[f"{folder}/__pycache__/{name[:-3]}.{sys.implementation.cache_tag}.pyc"] = _compiled(content, name)
    files.setdefault(f"{where}/lib-dynload/README", b"where this Python looks for modules in machine code\n")
    modules = set(map(os.path.realpath, found["modules"]))
    for path in found["maps"]:
        real = os.path.realpath(path)
        if real == python or real in modules or not path.startswith("/") or not os.path.isfile(real):
            continue
        name = elf.soname(real)
        if name and not name.startswith("ld-"):
            files[f"{LIBRARIES[1:]}/{name}"] = _read(real)
            if name.startswith("libc."):
                for one in _NSS:
                    beside = os.path.join(os.path.dirname(path), one)
                    if os.path.isfile(beside):
                        files[f"{LIBRARIES[1:]}/{one}"] = _read(beside)
    loader = elf.interpreter(python)
    if loader:
        files[loader[1:]] = _read(loader)
    return files


def _compiled(source: bytes, name: str) -> bytes:
    """The bytecode of a module, to be taken as it is (PEP 552, unchecked): what is inside does not change."""
    import importlib.util
    import marshal

    code = compile(source, f"<{name}>", "exec", dont_inherit=True, optimize=0)
    return importlib.util.MAGIC_NUMBER + b"\1\0\0\0" + importlib.util.source_hash(source) + marshal.dumps(code)


def _pack(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    folders = {"run/tidegate", "run/keys"}
    for path in files:
        while path := os.path.dirname(path):
            folders.add(path)
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(folders):
            entry = tarfile.TarInfo(path)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        for path, content in sorted(files.items()):
            entry = tarfile.TarInfo(path)
            entry.size = len(content)
            entry.mode = 0o755 if content.startswith(b"\x7fELF") else 0o644
            tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
