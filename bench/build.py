"""What the bench needs on the machine: three compiled C programs, and the peers that can be had.

Everything of ours lands in `bench/.build`, which git ignores; Debian packages are installed only as root and only
where missing. Two are unpacked there in place of being installed: squid-openssl, which would take the place of squid,
and nginx, which is not asked to serve this machine. What cannot be had is named with its reason and left out; a
compiler is the one thing the bench cannot do without.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from bench.processes import BenchError

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
BUILD = os.path.join(HERE, ".build")
RUN = os.path.join(BUILD, "run")
NATIVE = os.path.join(HERE, "native")
LOADGEN = os.path.join(BUILD, "loadgen")
ORIGIN = os.path.join(BUILD, "origin")
TLSLOAD = os.path.join(BUILD, "tlsload")
UNPACKED = os.path.join(BUILD, "debian")
NGINX = os.path.join(UNPACKED, "nginx", "usr", "sbin", "nginx")
SQUID_OPENSSL = os.path.join(UNPACKED, "squid-openssl")
VENV = os.path.join(BUILD, "venv")
NODE = os.path.join(BUILD, "node")
SRT = os.path.join(NODE, "node_modules", ".bin", "srt")

# program -> Debian package
DEBIAN = {
    "squid": "squid",
    "tinyproxy": "tinyproxy",
    "bwrap": "bubblewrap",
    "socat": "socat",
    "rg": "ripgrep",
    "npm": "npm",
}
# program in the venv -> package on PyPI
PYTHON = {"proxy": "proxy.py", "pproxy": "pproxy", "mitmdump": "mitmproxy"}
SANDBOX_RUNTIME = "@anthropic-ai/sandbox-runtime"


def find(program: str) -> str | None:
    """Return the path of a program, also where an ordinary user's PATH does not look."""
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def compile_native() -> None:
    """Compile the load generator and the origin where they are older than their source.

    Raises:
        BenchError: when there is no compiler or it refuses.
    """
    compiler = find("cc") or find("gcc") or find("clang")
    if compiler is None:
        raise BenchError("no C compiler: install gcc (Debian: apt-get install gcc libc6-dev)")
    os.makedirs(BUILD, exist_ok=True)
    for binary in (LOADGEN, ORIGIN):
        # Static where that can be had: it runs in containers of other systems, too.
        if _compile(compiler, binary, "-static") and (why := _compile(compiler, binary)):
            raise BenchError(why)


def compile_tls() -> str | None:
    """Compile the load generator that speaks TLS; return why not, or None."""
    compiler = find("cc") or find("gcc") or find("clang")
    if compiler is None:
        return "no C compiler"
    why = _compile(compiler, TLSLOAD, "-lssl", "-lcrypto")
    if why and not os.path.exists("/usr/include/openssl/ssl.h"):
        if reason := _install_debian(["libssl-dev"]):
            return reason
        why = _compile(compiler, TLSLOAD, "-lssl", "-lcrypto")
    return why


def _compile(compiler: str, binary: str, *more: str) -> str | None:
    """Compile one program where it is older than its source; return why not, or None."""
    source = os.path.join(NATIVE, os.path.basename(binary) + ".c")
    headers = [os.path.join(NATIVE, name) for name in ("common.h", "load.h")]
    newest = max(os.path.getmtime(path) for path in (source, *headers))
    if os.path.exists(binary) and os.path.getmtime(binary) > newest:
        return None
    made = f"{binary}.{os.getpid()}"
    warnings = ("-Wall", "-Wextra", "-Wno-unused-function")
    done = _run([compiler, "-O2", *warnings, "-o", made, source, *more])
    if done is not None:
        return f"{source} does not compile: {done}"
    os.replace(made, binary)
    return None


def install_peers(wanted: set[str]) -> dict[str, str]:
    """Install the peers named in `wanted` as far as possible; return those that are missing, with the reason."""
    missing: dict[str, str] = {}
    if "squid-openssl" in wanted:
        wanted = wanted | {"squid"}
    programs = {"squid", "tinyproxy"} & wanted
    if "sandbox-runtime" in wanted:
        programs |= {"bwrap", "socat", "rg", "npm"}
    if "bubblewrap" in wanted:
        programs.add("bwrap")
    reason = _install_debian([DEBIAN[program] for program in sorted(programs) if find(program) is None])
    absent = {program for program in programs if find(program) is None}
    for program in absent & {"squid", "tinyproxy"}:
        missing[program] = reason or "not installed"
    if "bwrap" in absent and "bubblewrap" in wanted:
        missing["bubblewrap"] = reason or "not installed"
    if "sandbox-runtime" in wanted:
        why = reason if absent else _install_node()
        if why or not os.path.exists(SRT):
            missing["sandbox-runtime"] = why or "npm left no srt"
    names = {"proxy": "proxy.py", "pproxy": "pproxy", "mitmdump": "mitmproxy"}
    for program, package in PYTHON.items():
        if names[program] in wanted and (why := _install_python(program, package)):
            missing[names[program]] = why
    if "nginx" in wanted:
        missing |= prepare_inspection(wanted)
    return missing


def prepare_inspection(wanted: set[str]) -> dict[str, str]:
    """Get ready what inspection is measured with; return what is missing."""
    found = {"tlsload": compile_tls(), "nginx": _unpack("nginx", NGINX)}
    if "squid-openssl" in wanted:
        # Its pages, icons and libraries are those of squid, which is installed.
        squid = os.path.join(SQUID_OPENSSL, "usr", "sbin", "squid")
        found["squid-openssl"] = _unpack("squid-openssl", squid)
    return {name: why for name, why in found.items() if why}


def _unpack(package: str, program: str) -> str | None:
    """Unpack a Debian package into a folder of ours and see that its program can start; return why not, or None."""
    if not os.path.exists(program):
        if find("apt-get") is None or find("dpkg") is None:
            return "no Debian, so no package to unpack"
        folder = os.path.join(UNPACKED, "packages")
        os.makedirs(folder, exist_ok=True)
        print(f"bench: unpacking {package}", file=sys.stderr)
        why = _run(["apt-get", "download", "-qq", package], cwd=folder)
        if why and os.geteuid() == 0:
            why = _run(["apt-get", "update", "-qq"]) or _run(["apt-get", "download", "-qq", package], cwd=folder)
        archives = sorted(name for name in os.listdir(folder) if name.startswith(f"{package}_"))
        if why or not archives:
            return why or "apt-get downloaded nothing"
        archive = os.path.join(folder, archives[-1])
        if why := _run(["dpkg", "-x", archive, os.path.join(UNPACKED, package)]):
            return why
    return _run([program, "-v"])


def _install_debian(packages: list[str]) -> str | None:
    if not packages:
        return None
    if os.geteuid() != 0 or find("apt-get") is None:
        return f"install it first: apt-get install {' '.join(packages)}"
    print(f"bench: installing {' '.join(packages)}", file=sys.stderr)
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    why = None
    for package in packages:  # one at a time, so that one that is unknown does not cost the others
        # Debian would start a daemon of its own for squid and tinyproxy; a policy-rc.d that says no prevents it.
        done = _run(["apt-get", "install", "-y", "--no-install-recommends", package], env=env | {"RUNLEVEL": "1"})
        why = done or why
    return why


def _install_node() -> str | None:
    if os.path.exists(SRT):
        return None
    npm = find("npm")
    if npm is None:
        return "npm is not installed"
    print(f"bench: installing {SANDBOX_RUNTIME}", file=sys.stderr)
    os.makedirs(NODE, exist_ok=True)
    return _run([npm, "install", "--prefix", NODE, "--no-audit", "--no-fund", "--ignore-scripts", SANDBOX_RUNTIME])


def _install_python(program: str, package: str) -> str | None:
    path = os.path.join(VENV, "bin", program)
    if os.path.exists(path):
        return None
    print(f"bench: installing {package}", file=sys.stderr)
    if not os.path.exists(os.path.join(VENV, "bin", "pip")):
        why = _run([sys.executable, "-m", "venv", VENV])
        if why:
            return f"no venv: {why}"
    return _run([os.path.join(VENV, "bin", "pip"), "install", "--quiet", package])


def _run(command: list[str], env: dict[str, str] | None = None, cwd: str = ROOT) -> str | None:
    """Run it; return None when it worked, else the last line it said."""
    try:
        done = subprocess.run(
            command, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=600, check=False, cwd=cwd
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return None
    said = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
    return said[-1][:200] if said else f"status {done.returncode}"
