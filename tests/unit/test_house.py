"""The rules of the house, checked by reading the source: who imports whom, what stays pure, what `run` may load."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCE = os.path.join(ROOT, "src", "tidegate")

# DESIGN's table: a room may import the rooms named here, and itself.
ABOVE_GATE = {"model", "policy", "addresses", "wire"}
MAY_IMPORT = {
    "model": set(),
    "policy": {"model"},
    "addresses": {"model"},
    "wire": {"model"},
    "gate": ABOVE_GATE,
    "inspect": ABOVE_GATE,
    "holds": {"model"},  # and the gate's listener seam
    "questions": {"model"},
    "journal": {"model"},
    "state": {"model"},
    "tools": {"model", "policy", "wire", "inspect", "holds"},
}
MAY_IMPORT["runtime"] = set(MAY_IMPORT)
MAY_IMPORT["server"] = set(MAY_IMPORT)
MAY_IMPORT["doctor"] = set(MAY_IMPORT)
MAY_IMPORT["cli"] = set(MAY_IMPORT)
SEAMS = {("holds", "tidegate.gate.listener")}

PURE = ("model", "policy", "addresses", "wire")
NOT_PURE = {"asyncio", "select", "socket", "os", "time", "logging", "subprocess", "threading", "random"}

# What costs `run` milliseconds at start: enum alone 6, with what it brings along (model/closed.py).
HEAVY = {
    *("dataclasses", "typing", "re", "json", "socket", "ipaddress", "logging", "contextlib", "subprocess", "pathlib"),
    *("threading", "asyncio", "random", "hashlib", "ssl", "inspect", "tempfile", "shutil", "click", "rich", "yaml"),
    *("idna", "urllib", "http", "importlib", "traceback"),
    *("enum", "functools", "collections", "signal", "types", "operator"),
}
LEAN_ROOMS = ("model", "addresses", "wire", "gate", "holds", "journal")
IMPORTED_LATER = {
    "journal/readback.py",  # by `tidegate events`
    "journal/contacts.py",  # by `tidegate policy learn` and `new-hosts`
    *(
        f"journal/{name}.py" for name in ("actions", "chain", "heads", "refusals", "segments", "verify")
    ),  # by the server
    *(f"holds/uid_{name}.py" for name in ("claims", "fence", "range", "remains")),  # by `--hold uid`
    "wire/method_fields.py",  # by the first form under a rule with methods
    "journal/report.py",  # by `run --report`, when the command has ended
}
SINKS = "journal/sinks/"  # by the server
CONTAINERS = "holds/container/"  # by `--hold docker` and `podman`: an engine costs a hundred times as much

# Modules without a test file of their own: what runs them, and why.
TESTED_ELSEWHERE = {
    "doctor/escapes/rows": "tests/holds/test_escapes.py",  # they only mean something inside a hold
}

# Paths of one machine, in pieces so that this file does not name them.
PRIVATE_PATHS = ("/work" + "/main", "/work" + "/shared", "/tmp" + "/tg", "." + "pyenv")


def modules() -> list[str]:
    """Return every module of the source, as a path relative to src/tidegate."""
    found = []
    for folder, folders, files in os.walk(SOURCE):
        folders[:] = [name for name in folders if name != "__pycache__"]
        found += [os.path.relpath(os.path.join(folder, name), SOURCE) for name in files if name.endswith(".py")]
    return sorted(found)


def find_tests() -> list[str]:
    """Return every test file, relative to the repository."""
    found = []
    for folder, _, files in os.walk(os.path.join(ROOT, "tests")):
        found += [os.path.relpath(os.path.join(folder, name), ROOT) for name in files if name.startswith("test_")]
    return sorted(name for name in found if name.endswith(".py"))


def parse(path: str) -> ast.Module:
    """Read one file as a tree."""
    with open(path, encoding="utf-8") as file:
        return ast.parse(file.read(), path)


def imported(nodes: Iterator[ast.AST], package: str) -> set[str]:
    """Return the full names of what import statements among the nodes name."""
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")
                base = ".".join([*parts[: len(parts) - node.level + 1], *([node.module] if node.module else [])])
            names.add(base)
            names |= {f"{base}.{alias.name}" for alias in node.names}
    return names


def at_load(tree: ast.AST) -> Iterator[ast.AST]:
    """Walk the statements that run when the module is loaded: no function bodies, no TYPE_CHECKING branch."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            for child in node.orelse:
                yield child
                yield from at_load(child)
            continue
        yield node
        yield from at_load(node)


def package_of(module: str) -> str:
    """Return the dotted package a module is in."""
    return ".".join(["tidegate", *os.path.dirname(module).split(os.sep)]).rstrip(".")


@pytest.mark.parametrize("module", modules())
def test_arrows_point_up_the_table(module: str) -> None:
    """A module imports only rooms that DESIGN's table lets its room import, for types too."""
    room = module.split(os.sep, maxsplit=1)[0]
    if not os.path.isdir(os.path.join(SOURCE, room)):
        return
    allowed = MAY_IMPORT[room] | {room}
    for name in imported(ast.walk(parse(os.path.join(SOURCE, module))), package_of(module)):
        parts = name.split(".")
        if parts[0] != "tidegate" or len(parts) < 2 or not os.path.isdir(os.path.join(SOURCE, parts[1])):
            continue
        seam = any(room == here and name.startswith(there) for here, there in SEAMS)
        seam = seam or any(room == here and there.startswith(name) for here, there in SEAMS)
        assert parts[1] in allowed or seam, f"{module} imports {name}; {room}/ may import {sorted(allowed)}"


@pytest.mark.parametrize("module", [name for name in modules() if name.split(os.sep)[0] in PURE])
def test_pure_rooms_do_no_io(module: str) -> None:
    """A room without I/O imports no clock, no socket, no operating system, not even inside a function."""
    names = {name.split(".")[0] for name in imported(ast.walk(parse(os.path.join(SOURCE, module))), "")}
    assert not names & NOT_PURE


@pytest.mark.parametrize("module", [name for name in modules() if name.split(os.sep)[0] in LEAN_ROOMS])
def test_rooms_on_the_way_of_run_load_nothing_heavy(module: str) -> None:
    """What `run` goes through imports nothing at load that costs its start milliseconds."""
    names = {name.split(".")[0] for name in imported(at_load(parse(os.path.join(SOURCE, module))), "")}
    assert module in IMPORTED_LATER or module.startswith((CONTAINERS, SINKS)) or not names & HEAVY


@pytest.mark.parametrize(
    "loaded",
    [
        "tidegate.cli.main, tidegate.cli.run",
        "tidegate.runtime.gate_process, tidegate.runtime.early_key, tidegate.runtime.inspection",
        "tidegate.inspect.roots",
        "tidegate.runtime.trust",
    ],
    ids=["front", "gate", "roots", "trust"],
)
def test_run_starts_lean(loaded: str) -> None:
    """What `run` loads in its front and in its gate brings none of the heavy modules along, in a bare Python."""
    program = (
        f"import sys\nbefore = set(sys.modules)\nsys.path.insert(0, sys.argv[1])\nimport {loaded}\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    argv = [sys.executable, "-I", "-S", "-c", program, os.path.join(ROOT, "src")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert not {name for name in done.stdout.split() if name.split(".")[0] in HEAVY}


def test_a_whole_start_of_run_stays_lean(tmp_path: Path) -> None:
    """A real `run true` loads nothing heavy in its front and its init, on its way neither (a user without a state)."""
    boot = os.path.join(ROOT, "scripts", "launcher", "boot.py")
    environment = os.path.dirname(os.path.dirname(sys.executable))
    argv = [sys.executable, "-I", "-S", "-X", "importtime", boot, ROOT, environment, "run", "--", "true"]
    env = os.environ | {"XDG_STATE_HOME": str(tmp_path)}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False, timeout=60)
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    loaded = {line.rsplit("|", 1)[-1].strip() for line in lines}
    assert "tidegate.cli.run" in loaded, done.stderr
    assert not {name.split(".")[0] for name in loaded} & HEAVY


def has_code(path: str) -> bool:
    """Whether a module holds more than its head comment."""
    return any(not isinstance(node, (ast.Expr, ast.ImportFrom)) for node in parse(path).body)


@pytest.mark.parametrize("module", modules())
def test_each_module_has_its_test_file(module: str) -> None:
    """src/tidegate/ROOM/MODULE.py has tests/unit/ROOM/test_MODULE.py."""
    folder, name = os.path.split(module)
    if folder in TESTED_ELSEWHERE:
        assert os.path.isfile(os.path.join(ROOT, TESTED_ELSEWHERE[folder]))
        return
    if name == "__init__.py" and (not folder or not has_code(os.path.join(SOURCE, module))):
        return
    name = f"test_{os.path.basename(folder) if name == '__init__.py' else name.removesuffix('.py')}.py"
    choices = [os.path.join(ROOT, "tests", "unit", folder, name)]
    if module.endswith("__init__.py"):
        choices.append(os.path.join(ROOT, "tests", "unit", os.path.dirname(folder), name))
        choices.append(os.path.join(ROOT, "tests", "unit", folder, "test_init.py"))
    assert any(os.path.isfile(choice) for choice in choices), f"no {os.path.relpath(choices[0], ROOT)}"


@pytest.mark.parametrize("module", modules())
def test_each_module_is_short_and_says_what_it_is_for(module: str) -> None:
    """A module has a head comment, and at most 400 lines."""
    path = os.path.join(SOURCE, module)
    head = ast.get_docstring(parse(path))
    assert head, f"{module} has no head comment"
    with open(path, encoding="utf-8") as file:
        lines = sum(1 for _ in file)
    assert lines <= 400, f"{module} has {lines} lines"


@pytest.mark.parametrize("path", find_tests())
def test_each_test_says_what_it_proves(path: str) -> None:
    """Every test function has a docstring."""
    for node in ast.walk(parse(os.path.join(ROOT, path))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_"):
            assert ast.get_docstring(node), f"{path}: {node.name} does not say what it proves"


@pytest.mark.parametrize("module", modules())
def test_no_command_goes_through_a_shell(module: str) -> None:
    """Commands are lists of arguments: no shell=True, os.system or os.popen in the source."""
    for node in ast.walk(parse(os.path.join(SOURCE, module))):
        if isinstance(node, ast.keyword) and node.arg == "shell":
            assert isinstance(node.value, ast.Constant), module
            assert not node.value.value, module
        if isinstance(node, ast.Attribute):
            assert node.attr not in ("system", "popen"), module


def texts() -> Iterator[tuple[str, str]]:
    """Yield every text file that belongs to the repository: what git tracks, and what it would."""
    argv = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    if listed.returncode:
        pytest.skip("not a git checkout: what belongs to the repository cannot be told")
    for name in listed.stdout.split("\0"):
        path = os.path.join(ROOT, name)
        if os.path.isfile(path) and not os.path.islink(path) and os.path.getsize(path) <= 1 << 20:
            with open(path, encoding="utf-8", errors="replace") as file:
                yield name, file.read()


def test_no_file_names_the_machine_it_was_written_on() -> None:
    """No source, test or document holds a path of a build machine."""
    found = [(path, mark) for path, text in texts() for mark in PRIVATE_PATHS if mark in text]
    assert not found


def test_the_readme_shows_the_two_commands() -> None:
    """README names the two commands a stranger runs first, and the way around private registries."""
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        text = file.read()
    assert "./tidegate run -- python3 -c" in text
    assert "./tidegate run -- pip download --no-deps -d six six" in text
    assert "--allow pypi.org:443" in text


def test_the_version_is_one() -> None:
    """pyproject, the package and the newest entry of CHANGELOG name the same version."""
    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
        version = tomllib.load(file)["project"]["version"]
    program = "import sys; sys.path.insert(0, sys.argv[1]); import tidegate; print(tidegate.__version__)"
    argv = [sys.executable, "-I", "-S", "-c", program, os.path.join(ROOT, "src")]
    assert subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout.strip() == version
    with open(os.path.join(ROOT, "CHANGELOG.md"), encoding="utf-8") as file:
        heads = [line for line in file if line.startswith("## ")]
    assert version in heads[0]


@pytest.mark.parametrize("script", ["tidegate", "scripts/setup", "scripts/check", "scripts/test", ".ci/run"])
def test_scripts_can_be_run_and_parse(script: str) -> None:
    """What a contributor runs is executable, and a POSIX shell reads it without complaint."""
    path = os.path.join(ROOT, script)
    assert os.access(path, os.X_OK)
    done = subprocess.run(["/bin/sh", "-n", path], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
