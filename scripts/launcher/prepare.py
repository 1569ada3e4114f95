"""Makes the environment that `./tidegate` runs in, then starts it: `python3 -I prepare.py FOLDER run ARGS...`.

One set-up at a time: a lock (flock(2)) on the folder itself. The environment is made under another name, gets a stamp
(a hash of the wanted packages and Python's version) and is renamed, so a kill at any moment leaves either nothing that
counts or a whole one; what an earlier kill left is removed first.
With `only` in place of `run` it sets up, prints where, and ends; scripts/setup uses that.
What it does not do: decide whether a set-up is needed on ordinary starts (`./tidegate` looks at the stamp's date).
"""

from __future__ import annotations

import compileall
import contextlib
import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from bundle import write_bundle  # beside this file, which -I keeps off the path

CANNOT_START = 78  # HLD-16
STAMP = "tidegate-stamp"
APT = "/usr/bin/apt-get"


class SetupError(Exception):
    """Cannot be set up; the text says what to do."""


def say(text: str) -> None:
    """Print one line for people."""
    try:
        sys.stderr.write(f"tidegate: {text}\n")
        sys.stderr.flush()
    except (OSError, AttributeError):
        pass  # nobody listens


class Setup:
    """One set-up: where from, where to, and the log of what was run."""

    def __init__(self, folder: str) -> None:
        """Choose the place: beside the launcher, or in the cache where that cannot be written."""
        self.folder = folder
        home = os.path.expanduser("~") if "HOME" in os.environ else "/nonexistent"
        self.cache = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache"), "tidegate")
        self.homeless = not os.environ.get("XDG_CACHE_HOME") and not os.path.isdir(home)  # and root would make it one
        self.requirements = os.path.join(folder, "scripts", "launcher", "requirements.txt")
        self.parent = self._writable_parent()
        self.environment = os.path.join(self.parent, ".venv")
        self.log = self._log_path()

    def _writable_parent(self) -> str:
        if os.access(self.folder, os.W_OK | os.X_OK):
            return self.folder
        parent = os.path.join(self.cache, "environment" + self.folder)
        if self.homeless:
            raise SetupError(
                f"{self.folder} is read-only, and there is no home folder: "
                "set XDG_CACHE_HOME to a folder that can be written"
            )
        try:
            os.makedirs(parent, mode=0o700, exist_ok=True)
        except OSError as error:
            raise SetupError(
                f"{self.folder} is read-only, and so is {self.cache} ({error.strerror}): "
                "set XDG_CACHE_HOME to a folder that can be written"
            ) from error
        if os.stat(parent).st_uid != os.geteuid():
            raise SetupError(f"{parent} belongs to another user: set XDG_CACHE_HOME to a folder of your own")
        return parent

    def _log_path(self) -> str:
        try:
            if self.homeless:
                raise FileNotFoundError
            os.makedirs(self.cache, mode=0o700, exist_ok=True)
            path = os.path.join(self.cache, "setup.log")
            with open(path, "w", encoding="utf-8"):
                return path
        except OSError:
            handle, path = tempfile.mkstemp(prefix="tidegate-setup-", suffix=".log")
            os.close(handle)
            return path

    def stamp(self) -> str:
        """Return what the stamp of a good environment says."""
        with open(self.requirements, "rb") as file:
            wanted = hashlib.sha256(file.read()).hexdigest()
        return f"{wanted} {sys.version_info[0]}.{sys.version_info[1]}\n"

    def is_good(self) -> bool:
        """Whether a whole environment for this Python and these packages is there; renews its date."""
        stamp = os.path.join(self.environment, STAMP)
        try:
            with open(stamp, encoding="ascii", errors="replace") as file:
                same = file.read() == self.stamp()
            if not self.works(self.environment):
                return False
            if not same:  # other packages are wanted now, and they are there
                self.write_stamp(self.environment)
            os.utime(stamp)
        except OSError:
            return False
        return True

    def works(self, environment: str) -> bool:
        """Whether the environment's Python is this version and has the packages wanted."""
        program = "\n".join(
            (
                "import sys, importlib.metadata as m",
                f"assert sys.version_info[:2] == {tuple(sys.version_info[:2])}",
                "number = lambda text: [int(part) for part in text.split('.')[:3] if part.isdigit()]",
                "for line in open(sys.argv[1]).read().split():",
                "    name, least = line.split('>=')",
                "    assert number(m.version(name)) >= number(least), line",
            )
        )
        python = os.path.join(environment, "bin", "python")
        return self.run([python, "-I", "-c", program, self.requirements])

    def run(self, command: list[str], **environment: str) -> bool:
        """Run a command with its output in the log; True where it ended well."""
        if self.homeless:
            environment["PIP_NO_CACHE_DIR"] = "1"
        with open(self.log, "a", encoding="utf-8") as log:
            log.write(f"$ {' '.join(command)}\n")
            log.flush()
            try:
                done = subprocess.run(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    check=False,
                    env={**os.environ, **environment},
                )
            except OSError as error:
                log.write(f"{error}\n")
                return False
        return done.returncode == 0

    def prepare(self) -> None:
        """Make the environment unless a good one is there.

        Raises:
            SetupError: it cannot be made.
        """
        lock = os.open(self.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another set-up in this folder to end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            self.sweep()
            if self.is_good():
                return
            ours = os.path.exists(os.path.join(self.environment, STAMP))
            if os.path.lexists(self.environment) and not ours:
                self.adopt()
            else:
                say(f"setting up its environment in {self.environment} (first use, or its packages changed)")
                self.build()
            self.compile()
        finally:
            os.close(lock)

    def sweep(self) -> None:
        """Remove what a set-up that was killed has left. The lock is ours, so nobody is using it."""
        for name in os.listdir(self.parent):
            if name.startswith((".venv-new-", ".venv-old-")):
                shutil.rmtree(os.path.join(self.parent, name), ignore_errors=True)

    def adopt(self) -> None:
        """Use a .venv that someone else made; add the packages where they are missing."""
        python = os.path.join(self.environment, "bin", "python")
        if not self.works(self.environment):
            say(f"installing its packages into {self.environment}")
            installed = self.run([python, "-m", "pip", "install", "--quiet", "-r", self.requirements])
            if not installed or not self.works(self.environment):
                raise SetupError(
                    f"{self.environment} was not made by tidegate and cannot be used: remove it, or see {self.log}"
                )
        self.write_stamp(self.environment)

    def write_stamp(self, environment: str) -> None:
        """Say that the environment is whole."""
        path = os.path.join(environment, STAMP)
        with open(f"{path}.new", "w", encoding="ascii") as file:
            file.write(self.stamp())
        os.replace(f"{path}.new", path)

    def build(self) -> None:
        """Make the environment under another name and move it into place."""
        fresh = os.path.join(self.parent, f".venv-new-{os.getpid()}")
        try:
            self.fill(fresh)
            self.write_stamp(fresh)
            if os.path.lexists(self.environment):
                os.rename(self.environment, os.path.join(self.parent, f".venv-old-{os.getpid()}"))
            os.rename(fresh, self.environment)
        finally:
            self.sweep()

    def fill(self, fresh: str) -> None:
        """Make a virtual environment with the packages at `fresh`."""
        executable = getattr(sys, "_base_executable", None) or sys.executable
        has_ensurepip = self.has_ensurepip()
        if not has_ensurepip and os.geteuid() == 0 and os.access(APT, os.X_OK):
            has_ensurepip = self.install_venv_package()
        if has_ensurepip and self.run([executable, "-I", "-m", "venv", fresh]):
            pip = [os.path.join(fresh, "bin", "python"), "-I", "-m", "pip", "install"]
        else:
            shutil.rmtree(fresh, ignore_errors=True)
            if not self.run([executable, "-I", "-m", "venv", "--without-pip", fresh]):
                raise SetupError(f"Python's venv module is missing: apt install {self.venv_package()}")
            pip = self.foreign_pip(executable, fresh)
        # pip's own five tries wait for a quarter of a minute where there is no network.
        install = [*pip, "--quiet", "--disable-pip-version-check", "--no-input", "--retries", "2"]
        install += ["-r", self.requirements]
        if not self.run(install) or not self.works(fresh):
            raise SetupError(f"its Python packages could not be installed ({self.last_error()}): see {self.log}")
        # What takes more codings off answers comes along where it can.
        optional = os.path.join(self.folder, "scripts", "launcher", "optional.txt")
        self.run([*install[:-1], optional])
        self.rename_inside(fresh)

    @staticmethod
    def has_ensurepip() -> bool:
        """Whether this Python can put pip into an environment; Debian ships that apart."""
        spec = importlib.util.find_spec("ensurepip")
        return spec is not None and spec.origin is not None

    @staticmethod
    def venv_package() -> str:
        """Return the Debian package that has ensurepip for this Python."""
        return f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"

    def install_venv_package(self) -> bool:
        """Install ensurepip by apt, for root only."""
        say(f"installing {self.venv_package()}")
        quiet = {"DEBIAN_FRONTEND": "noninteractive"}
        install = [APT, "install", "-y", "--no-install-recommends", self.venv_package()]
        if not self.run(install, **quiet):
            self.run([APT, "update"], **quiet)
            self.run(install, **quiet)
        importlib.invalidate_caches()
        return self.has_ensurepip()

    def foreign_pip(self, executable: str, fresh: str) -> list[str]:
        """Return an install command of a pip that is not in the environment."""
        packages = os.path.join(fresh, "lib", f"python{sys.version_info[0]}.{sys.version_info[1]}", "site-packages")
        if self.run([executable, "-m", "pip", "--version"]):
            return [executable, "-m", "pip", "install", "--target", packages]
        for name in ("pip3", "pip"):
            path = shutil.which(name)
            if path and self.run([path, "--python", os.path.join(fresh, "bin", "python"), "--version"]):
                return [path, "--python", os.path.join(fresh, "bin", "python"), "install"]
        raise SetupError(f"neither ensurepip nor pip is here: apt install {self.venv_package()}")

    def last_error(self) -> str:
        """Return the last error line of the log, short."""
        with open(self.log, encoding="utf-8", errors="replace") as file:
            errors = [line.strip() for line in file if line.upper().startswith(("ERROR", "E:"))]
        return errors[-1][:160] if errors else "no network?"

    def rename_inside(self, fresh: str) -> None:
        """Put the final name into the scripts of bin/, which name their Python."""
        folder = os.path.join(fresh, "bin")
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if os.path.islink(path):
                continue
            with open(path, "rb") as file:
                text = file.read()
            if fresh.encode() in text:
                with open(path, "r+b") as file:
                    file.write(text.replace(fresh.encode(), self.environment.encode()))
                    file.truncate()

    def compile(self) -> None:
        """Compile our source now, since a later start may not be able to write it."""
        if self.parent != self.folder:
            sys.pycache_prefix = os.path.join(self.environment, "pycache")
        compileall.compile_dir(os.path.join(self.folder, "src"), quiet=2, maxlevels=8)
        compileall.compile_dir(os.path.join(self.folder, "scripts", "launcher"), quiet=2, maxlevels=0)
        with contextlib.suppress(OSError, SyntaxError, ValueError):  # a start without it is a little slower
            write_bundle(self.folder, self.environment)


def main(folder: str, mode: str, arguments: list[str]) -> int:
    """Set up, then become tidegate; returns only on failure or in mode `only`."""
    try:
        setup = Setup(folder)
    except (SetupError, OSError) as error:
        say(str(error))
        return CANNOT_START
    try:
        setup.prepare()
    except SetupError as error:
        say(str(error))
        return CANNOT_START
    except OSError as error:
        # write(2) names no file: it was the environment's or the log's.
        where = error.filename or f"{setup.environment} or {setup.log}"
        say(f"cannot set up its environment: {error.strerror or error}: {where}")
        return CANNOT_START
    except KeyboardInterrupt:
        return 130
    if mode == "only":
        sys.stdout.write(setup.environment + "\n")
        return 0
    boot = os.path.join(folder, "scripts", "launcher", "boot.py")
    python = os.path.join(setup.environment, "bin", "python")
    os.execv(python, [python, "-I", "-S", boot, folder, setup.environment, *arguments])
    raise AssertionError("not reached")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
