"""`./tidegate`: the first use, every later one, and what goes wrong in between.

The environment is made for real, by Python's venv and pip, from empty wheels in a folder: no network is needed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.lab import namespaces
from tests.lab.api import as_user

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PYTHON = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
SETTING_UP = "tidegate: setting up its environment in"

# What the launcher starts; it answers with its arguments, or does what the first one says.
PROGRAM = """
def main(argv):
    import sys
    if argv[:1] == ["pipe"]:
        raise BrokenPipeError
    if argv[:1] == ["interrupt"]:
        raise KeyboardInterrupt
    if argv[:1] == ["import"]:
        import yaml
        print(yaml.__file__)
        return 0
    if argv[:1] == ["path"]:
        print(sys.flags.isolated, sys.flags.no_site, sys.argv[0], "site" in sys.modules)
        return 0
    print(argv)
    return 7 if argv[:1] == ["seven"] else 0
"""

pytestmark = [
    pytest.mark.xdist_group("launcher"),
    pytest.mark.skipif(
        not os.path.isfile(os.path.join(os.path.dirname(os.__file__), "ensurepip", "__init__.py")),
        reason="this Python has no ensurepip (python3-venv): the launcher would call apt here",
    ),
]


def write_wheel(folder: Path, name: str, module: str, version: str) -> None:
    """Write a wheel with one empty module."""
    stem = f"{name}-{version}"
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{module}/__init__.py", "")
        wheel.writestr(f"{stem}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{stem}.dist-info/RECORD", "")


def lay_clone(folder: Path) -> Path:
    """Put the launcher with a small program into a folder with a space in its name."""
    clone = folder / "a clone"
    (clone / "src" / "tidegate" / "cli").mkdir(parents=True)
    (clone / "src" / "tidegate" / "__init__.py").write_text("")
    (clone / "src" / "tidegate" / "cli" / "__init__.py").write_text("")
    (clone / "src" / "tidegate" / "cli" / "main.py").write_text(PROGRAM)
    shutil.copy(os.path.join(ROOT, "tidegate"), clone)
    shutil.copytree(
        os.path.join(ROOT, "scripts", "launcher"),
        clone / "scripts" / "launcher",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    return clone


class World:
    """A clone, a home, and wheels to install from."""

    def __init__(self, folder: Path, wheels: Path) -> None:
        self.clone = lay_clone(folder)
        self.home = folder / "home"
        self.home.mkdir()
        self.env = {
            "PATH": f"{os.path.dirname(PYTHON)}:/usr/bin:/bin",
            "HOME": str(self.home),
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(wheels),
            "PIP_CONFIG_FILE": "/dev/null",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }

    def command(self, *args: str) -> list[str]:
        """Return the command line of the launcher."""
        return [str(self.clone / "tidegate"), *args]

    def run(
        self,
        *args: str,
        argv: list[str] | None = None,
        before: Callable[[], None] | None = None,
        **env: str,
    ) -> tuple[int, str, str]:
        """Run the launcher; return its exit status, output and errors."""
        done = subprocess.run(
            argv if argv is not None else self.command(*args),
            env=self.env | env,
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            preexec_fn=before,
        )
        return done.returncode, done.stdout, done.stderr

    def leftovers(self) -> list[str]:
        """Return what a set-up left beside the environment."""
        return [name for name in os.listdir(self.clone) if name.startswith(".venv-")]


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheels of the packages, new enough, and of one that is not wanted yet."""
    folder = tmp_path_factory.mktemp("wheels")
    for name, module, version in (
        ("PyYAML", "yaml", "6.0.1"),
        ("idna", "idna", "3.10"),
        ("click", "click", "8.1.7"),
        ("rich", "rich", "13.0"),
        ("cryptography", "cryptography", "42.0"),
        ("h2", "h2", "4.4"),
        ("more", "more", "1.0"),
    ):
        write_wheel(folder, name, module, version)
    return folder


@pytest.fixture
def world(tmp_path: Path, wheels: Path) -> World:
    """A clone in which nothing was run yet."""
    return World(tmp_path, wheels)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Path:
    """A clone that was set up once; copied by `ready`."""
    world = World(tmp_path_factory.mktemp("made"), wheels)
    status, output, errors = world.run("first", "use")
    assert (status, output) == (0, "['first', 'use']\n"), errors
    assert errors == f"{SETTING_UP} {world.clone}/.venv (first use, or its packages changed)\n"
    assert world.leftovers() == []
    assert "__pycache__" in os.listdir(world.clone / "src" / "tidegate" / "cli")
    return world.clone


@pytest.fixture
def ready(world: World, made: Path) -> World:
    """A clone that was set up before."""
    shutil.rmtree(world.clone)
    shutil.copytree(made, world.clone, symlinks=True)
    return world


def masked(path: str, mask: str) -> None:
    """Put an empty file or a folder over a path; for a private mount namespace."""
    if os.path.exists(path):
        namespaces.mount(mask, os.path.realpath(path), flags=namespaces.MS_BIND)


def test_first_use_says_so_and_later_ones_are_silent(ready: World) -> None:
    """The first start makes the environment with one line on stderr (in the fixture); later ones print nothing."""
    for _ in range(2):
        assert ready.run("seven", "a b", "") == (7, "['seven', 'a b', '']\n", "")


def test_packages_are_there_when_imported_and_python_starts_bare(ready: World) -> None:
    """A command that needs a package finds it, though Python starts isolated and without site."""
    assert ready.run("import")[1].startswith(f"{ready.clone}/.venv/lib/python{VERSION}/site-packages/yaml/")
    assert ready.run("path")[1] == f"1 1 {ready.clone}/tidegate False\n"


def test_through_a_link_and_with_closed_descriptors(ready: World, tmp_path: Path) -> None:
    """A symlink to the launcher, a relative path, and closed stdin, stdout and stderr all work."""
    link = tmp_path / "tide gate"
    link.symlink_to(ready.clone / "tidegate")
    assert ready.run(argv=[str(link), "x"]) == (0, "['x']\n", "")
    program = 'cd "$1" && ./tidegate a && sh tidegate b && cd src && ../tidegate c'
    assert ready.run(argv=["/bin/sh", "-c", program, "sh", str(ready.clone)])[1] == "['a']\n['b']\n['c']\n"
    for closing, output in (("<&-", "['y']\n"), (">&-", ""), ("2>&-", "['y']\n"), ("<&- >&- 2>&-", "")):
        shell = ["/bin/sh", "-c", f'"$0" y {closing}', str(link)]
        assert ready.run(argv=shell) == (0, output, ""), closing


def test_it_ends_as_other_programs_do(ready: World) -> None:
    """A closed pipe and Ctrl-C end it by their signals, a full disk with one line; never a traceback."""
    assert ready.run("pipe") == (-signal.SIGPIPE, "", "")
    assert ready.run("interrupt") == (-signal.SIGINT, "", "")
    status, _, errors = ready.run(argv=["/bin/sh", "-c", '"$0" x >/dev/full', str(ready.clone / "tidegate")])
    assert status == 74
    assert errors == "tidegate: cannot write the output: No space left on device\n"


def test_it_starts_when_the_clone_is_read_only_later(ready: World) -> None:
    """Once set up, a start writes nothing into the folder, not even bytecode."""
    before = sorted(str(path) for path in ready.clone.rglob("*"))
    assert ready.run("x")[0] == 0
    assert sorted(str(path) for path in ready.clone.rglob("*")) == before


@pytest.mark.slow
def test_changed_packages_rebuild_and_a_touched_list_does_not(ready: World) -> None:
    """A newer date changes nothing and prints nothing, nor what is there already; other packages make a new one."""
    wants = ready.clone / "scripts" / "launcher" / "requirements.txt"
    stamp = ready.clone / ".venv" / "tidegate-stamp"
    (ready.clone / ".venv" / "marker").write_text("")
    later = stamp.stat().st_mtime + 10
    os.utime(wants, (later, later))
    assert ready.run("x") == (0, "['x']\n", "")
    assert (ready.clone / ".venv" / "marker").exists()
    wants.write_text("PyYAML>=6.0.1\nidna>=3.4\n")  # others are wanted, and they are there
    os.utime(wants, (later + 100_000, later + 100_000))
    assert ready.run("x") == (0, "['x']\n", "")
    assert (ready.clone / ".venv" / "marker").exists()
    wants.write_text("PyYAML>=6.0.1\nmore>=1\n")
    os.utime(wants, (later + 200_000, later + 200_000))
    status, output, errors = ready.run("x")
    assert (status, output) == (0, "['x']\n")
    assert errors.startswith(SETTING_UP)
    assert not (ready.clone / ".venv" / "marker").exists()
    assert ready.leftovers() == []


@pytest.mark.slow
def test_another_python_under_the_environment_rebuilds(ready: World) -> None:
    """Where the system's Python was replaced by another version, the environment is made again."""
    packages = ready.clone / ".venv" / "lib" / f"python{VERSION}"
    packages.rename(packages.with_name("python3.2"))
    status, output, errors = ready.run("x")
    assert (status, output) == (0, "['x']\n")
    assert errors.startswith(SETTING_UP)


def test_an_environment_someone_else_made_is_used_or_refused(ready: World) -> None:
    """A .venv without our stamp is used where it fits, and never overwritten where it does not (exit 78)."""
    (ready.clone / ".venv" / "tidegate-stamp").unlink()
    assert ready.run("x") == (0, "['x']\n", "")
    assert (ready.clone / ".venv" / "tidegate-stamp").exists()
    shutil.rmtree(ready.clone / ".venv")
    (ready.clone / ".venv").mkdir()
    (ready.clone / ".venv" / "mine").write_text("kept")
    status, _, errors = ready.run("x")
    assert status == 78
    assert "was not made by tidegate and cannot be used: remove it" in errors
    assert (ready.clone / ".venv" / "mine").read_text() == "kept"


@pytest.mark.slow
def test_a_second_set_up_waits_for_the_first(world: World) -> None:
    """While another set-up holds the folder, a line says that this one waits; then it goes on."""
    lock = os.open(world.clone, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with subprocess.Popen(
        world.command("x"), env=world.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "tidegate: waiting for another set-up in this folder to end\n"
        os.close(lock)
        output, errors = process.communicate(timeout=120)
    assert (process.returncode, output) == (0, "['x']\n")
    assert errors.startswith(SETTING_UP)


@pytest.mark.slow
def test_a_kill_in_the_middle_leaves_nothing_that_counts(world: World) -> None:
    """After SIGKILL during the set-up there is no .venv; the next start sweeps the rest and succeeds."""
    with subprocess.Popen(
        world.command("x"), env=world.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        end = time.monotonic() + 60
        while not any((world.clone / name / "bin" / "python").exists() for name in world.leftovers()):
            assert time.monotonic() < end
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
    assert not (world.clone / ".venv").exists()
    assert world.leftovers() != []
    assert world.run("x")[:2] == (0, "['x']\n")
    assert world.leftovers() == []


@pytest.mark.slow
def test_no_home_is_made_by_a_set_up(world: World) -> None:
    """HLD-16: what pip would keep and the log are elsewhere; root, too, makes no folder of a wrong HOME."""
    home = world.home / "none" / "home"
    status, output, errors = world.run("x", HOME=str(home), TMPDIR=str(world.home))
    assert (status, output) == (0, "['x']\n"), errors
    assert not home.parent.exists()


@pytest.mark.slow
def test_a_failed_install_names_its_log(world: World) -> None:
    """Without a way to the packages: exit 78, one line, and pip's whole output in the file it names."""
    status, output, errors = world.run("x", PIP_FIND_LINKS="/nonexistent")
    assert (status, output) == (78, "")
    assert len(errors.splitlines()) == 2
    match = re.search(r"could not be installed \(.*\): see (\S+)$", errors.splitlines()[1])
    assert match is not None, errors
    with open(match[1], encoding="utf-8") as log:
        assert "PyYAML" in log.read()
    assert not (world.clone / ".venv").exists()
    assert world.leftovers() == []


def test_a_read_only_folder_uses_the_cache(world: World, tmp_path: Path, isolated: None) -> None:  # noqa: ARG001
    """Where the folder cannot be written the environment is in the user's cache; where that neither, exit 78."""
    shutil.copytree(world.env["PIP_FIND_LINKS"], tmp_path / "wheels")
    os.chmod(tmp_path / "wheels", 0o755)
    world.env["PIP_FIND_LINKS"] = str(tmp_path / "wheels")
    os.chmod(world.clone, 0o555)
    try:
        argv = as_user(["/usr/bin/env", f"HOME={world.home}", *world.command("x")], str(tmp_path))
        os.chmod(world.home, 0o777)
        status, output, errors = world.run(argv=argv)
        assert (status, output) == (0, "['x']\n"), errors
        assert errors.startswith(f"{SETTING_UP} {world.home}/.cache/tidegate/environment{world.clone}/.venv")
        assert world.run(argv=argv) == (0, "['x']\n", "")
        assert not (world.clone / ".venv").exists()
        argv.insert(argv.index("/usr/bin/env") + 1, "XDG_CACHE_HOME=/proc/none")
        status, _, errors = world.run(argv=argv)
        assert status == 78
        assert "set XDG_CACHE_HOME to a folder that can be written" in errors
        assert len(errors.splitlines()) == 1
    finally:
        os.chmod(world.clone, 0o755)


def test_a_full_disk_is_named(world: World, isolated: None) -> None:  # noqa: ARG001
    """HLD-16: where not even the log can be written, one line says what and where; with room the next start sets up."""
    cache = world.home / ".cache"
    cache.mkdir()
    namespaces.mount("tmpfs", str(cache), "tmpfs", options="size=64k")
    with (cache / "fill").open("wb", buffering=0) as fill, contextlib.suppress(OSError):
        while True:
            fill.write(bytes(4096))
    status, _, errors = world.run("x")
    assert status == 78
    wanted = f"tidegate: cannot set up its environment: No space left on device: {world.clone}/.venv or {cache}"
    assert errors.splitlines()[-1].startswith(wanted)
    assert world.leftovers() == []
    (cache / "fill").unlink()
    assert world.run("x")[:2] == (0, "['x']\n")


def test_an_old_python_is_named(world: World, tmp_path: Path, isolated: None) -> None:  # noqa: ARG001
    """With nothing newer than 3.9 on the machine: exit 78 and one line that says which Python it found."""
    old = tmp_path / "bin" / "python3"
    old.parent.mkdir()
    old.write_text('#!/bin/sh\ncase "$*" in *exit*) exit 1 ;; esac\necho 3.9\n')
    old.chmod(0o755)

    def hide() -> None:
        namespaces.unshare(namespaces.CLONE_NEWNS)
        namespaces.private_mounts()
        masked("/usr/bin/python3", str(old))
        masked("/usr/local/bin/python3", str(old))

    status, output, errors = world.run("x", before=hide, PATH=str(old.parent))
    assert (status, output) == (78, "")
    assert errors.startswith("tidegate: needs Python 3.11 or newer; python3 is 3.9: install one, for example: apt")
    assert len(errors.splitlines()) == 1


@pytest.mark.slow
def test_without_ensurepip_another_pip_is_used_or_named(world: World, tmp_path: Path, isolated: None) -> None:  # noqa: ARG001
    """Without ensurepip and apt the set-up takes a pip it finds; without one, exit 78 naming the package."""
    empty = tmp_path / "empty"
    empty.mkdir()
    library = os.path.dirname(os.__file__)
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "python3").symlink_to(PYTHON)
    pip = tools / "pip"
    pip.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pip "$@"\n')
    pip.chmod(0o755)

    def hide() -> None:
        namespaces.unshare(namespaces.CLONE_NEWNS)
        namespaces.private_mounts()
        masked("/usr/bin/apt-get", "/dev/null")
        masked(os.path.join(library, "ensurepip"), str(empty))
        for place in ("site-packages", "dist-packages"):
            masked(os.path.join(library, place, "pip"), str(empty))
        masked("/usr/lib/python3/dist-packages/pip", str(empty))

    pip.rename(tools / "elsewhere")
    status, _, errors = world.run("x", before=hide, PATH=str(tools))
    assert status == 78
    assert errors.splitlines()[-1] == f"tidegate: neither ensurepip nor pip is here: apt install python{VERSION}-venv"
    (tools / "elsewhere").rename(pip)
    assert world.run("x", before=hide, PATH=str(tools))[:2] == (0, "['x']\n")
    assert world.run("import")[0] == 0


def test_the_list_of_packages_agrees_with_the_project() -> None:
    """The launcher installs exactly what pyproject.toml says the package depends on."""
    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
        project = tomllib.load(file)["project"]["dependencies"]
    with open(os.path.join(ROOT, "scripts", "launcher", "requirements.txt"), encoding="ascii") as file:
        assert file.read().split() == project


def test_the_real_one_answers(made: Path) -> None:
    """The launcher of this repository, with its own source, prints its version and nothing else."""
    packages = os.path.join(ROOT, ".venv", "bin", "python")
    if not os.path.exists(packages):
        pytest.skip("the repository's own environment is elsewhere")
    assert made.exists()
    done = subprocess.run(
        [os.path.join(ROOT, "tidegate"), "--version"], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("tidegate ")
