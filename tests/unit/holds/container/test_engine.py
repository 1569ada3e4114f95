"""engine.py: what an engine says, in our words."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tidegate.holds.container import engine
from tidegate.holds.container.engine import DOCKER, PODMAN, Engine
from tidegate.model.errors import StartError, UsageError

if TYPE_CHECKING:
    from pathlib import Path


def engine_that(folder: Path, script: str, name: str = DOCKER) -> Engine:
    """An engine whose program is this shell script."""
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return Engine(name, {**os.environ, "PATH": f"{folder}:/usr/bin:/bin"})


@pytest.mark.parametrize(
    ("said", "code", "fix"),
    [
        ("Error: No such container: x", "no-container", "ps -a"),
        ('Error: no container with name or ID "x" found: no such container', "no-container", "ps -a"),
        ("Error response from daemon: No such image: nothing:1", "image-missing", "pull"),
        ("Error: nothing:1: image not known", "image-missing", "pull"),
        ("Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?", "engine-down", "start"),
        ('error during connect: Get "http://bogus:2375/v1/info": dial tcp: no such host', "engine-down", "DOCKER_HOST"),
        ('Failed to initialize: unable to resolve docker endpoint: context "x": not found', "engine-down", "start"),
        (
            "runc create failed: error setting rlimit type 7: operation not permitted",
            "engine-limits",
            "default_ulimits",
        ),
        ("something\nelse", "engine", ""),
    ],
)
def test_a_failure_is_named(said: str, code: str, fix: str) -> None:
    """What both engines say on failure becomes one error with a stable code and what to type (HLD-7)."""
    error = Engine(DOCKER).failure("create", said)
    assert error.code == code
    assert fix in error.fix
    assert "\n" not in str(error)


@pytest.mark.parametrize("name", ["--help", "-h", " ", "two words", ""])
def test_what_is_no_name_of_an_image_is_usage(tmp_path: Path, name: str) -> None:
    """An engine would read it as an option, and answer with its help (HLD-16)."""
    with pytest.raises(UsageError, match="no name of an image"):
        engine_that(tmp_path, "exit 0").has_image(name)
    assert engine_that(tmp_path, "exit 0").has_image("registry.test:5000/a/b:1")


def test_an_engine_that_is_not_installed_is_named(tmp_path: Path) -> None:
    """Without the program there is one line with the package that has it (HLD-7)."""
    with pytest.raises(StartError, match="podman is not installed: apt install podman") as caught:
        Engine(PODMAN, {"PATH": str(tmp_path)}).run("info")
    assert caught.value.code == "engine-missing"


def test_what_an_engine_prints_is_returned(tmp_path: Path) -> None:
    """The neighbour: a command that works gives its output, with data on its standard input."""
    assert engine_that(tmp_path, 'echo "$1"; cat').run("import", data=b"tar\n") == "import\ntar"


def test_a_removal_that_an_engine_puts_off_is_tried_again(tmp_path: Path) -> None:
    """On a busy machine docker's daemon says no the first time; nothing is left all the same (HLD-8)."""
    tries = tmp_path / "tries"
    script = f"echo x >> {tries}; [ $(wc -l < {tries}) = 2 ] || {{ echo 'did not receive an exit event' >&2; exit 1; }}"
    engine_that(tmp_path, script).remove("x")
    assert tries.read_text() == "x\nx\n"


def test_removing_what_is_gone_is_fine(tmp_path: Path) -> None:
    """A container that is gone already is as good as removed; any other failure is not (HLD-8)."""
    engine_that(tmp_path, "echo 'Error: No such container: x' >&2; exit 1").remove("x")
    with pytest.raises(StartError, match="device busy"):
        engine_that(tmp_path, "echo 'device busy' >&2; exit 1").remove("x")


def test_who_finds_that_somebody_else_removes_a_container_does_not_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two starts at once sweep the same leftovers, and the engine is slow: neither is refused for that (HLD-8)."""
    monkeypatch.setattr(engine, "_BETWEEN", 0.01)
    said = "Error response from daemon: removal of container 5a5b is already in progress"
    engine_that(tmp_path, f"echo '{said}' >&2; exit 1").remove("x")


@pytest.mark.parametrize(
    ("name", "info", "rootless", "in_vm"),
    [
        (
            DOCKER,
            '{"ServerVersion":"20.10","OperatingSystem":"Debian","SecurityOptions":[]}',
            False,
            False,
        ),
        (DOCKER, '{"OperatingSystem":"Docker Desktop"}', False, True),
        (DOCKER, '{"OperatingSystem":"x","SecurityOptions":["name=seccomp","name=rootless"]}', True, False),
        (PODMAN, '{"host":{"serviceIsRemote":false,"security":{"rootless":true}}}', True, False),
        (PODMAN, '{"host":{"serviceIsRemote":true,"security":{"rootless":false}}}', False, True),
    ],
)
def test_an_engine_says_what_it_is(tmp_path: Path, name: str, info: str, rootless: bool, in_vm: bool) -> None:
    """Rootless and in a VM, by the words of each engine (HLD-4)."""
    found = engine_that(tmp_path, f"echo '{info}'", name).facts()
    assert (found.rootless, found.in_vm) == (rootless, in_vm)


def test_a_daemon_that_is_down_is_seen_by_info(tmp_path: Path) -> None:
    """`docker info` ends with 0 where the daemon does not answer, and says so inside (HLD-7)."""
    info = '{"ServerErrors":["Cannot connect to the Docker daemon at unix:///x"]}'
    with pytest.raises(StartError, match="cannot be reached"):
        engine_that(tmp_path, f"echo '{info}'").facts()


def test_what_is_no_json_is_an_error(tmp_path: Path) -> None:
    """An engine that answers otherwise than expected is an error, not a crash."""
    with pytest.raises(StartError, match="not understood"):
        engine_that(tmp_path, "echo {").inspect("x")


def test_what_each_start_asks_is_asked_once_and_ahead(tmp_path: Path) -> None:
    """HLD-4: answers that are expected are those of programs that run by then; an image and the engine are kept."""
    asked = tmp_path / "asked"
    script = f"""echo "$*" >> {asked}
case $1 in
image) echo '[{{"Id": "sha256:1"}}]' ;;
info) echo '{{"ServerVersion": "9"}}' ;;
esac"""
    one = engine_that(tmp_path, script)
    one.expect("x:1")
    one.expect("x:1")
    assert one.image("x:1") == one.image("x:1") == {"Id": "sha256:1"}
    assert one.has_image("x:1")
    assert one.facts().version == "9"
    assert one.labelled(engine.LABEL_OWNER) == []
    assert sorted(line.split()[0] for line in asked.read_text().splitlines()) == ["image", "info", "ps"]
    assert one.labelled(engine.LABEL_OWNER) == []  # what was expected answers once
    assert len(asked.read_text().splitlines()) == 4


def test_what_was_expected_of_an_engine_that_is_silent_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HLD-7: who waits in vain for one answer leaves no program behind that waits for another."""
    monkeypatch.setitem(engine.QUICK, "image", 1.0)
    pids = tmp_path / "pids"
    pids.touch()  # on a machine that is far too busy none of them has come so far in a second
    one = engine_that(tmp_path, f"echo $$ >> {pids}; exec sleep 600")
    one.expect("x:1")
    with pytest.raises(StartError, match="did not answer") as caught:
        one.image("x:1")
    assert caught.value.code == "engine-silent"
    begun = [int(line) for line in pids.read_text().split()]
    assert not [pid for pid in begun if os.path.exists(f"/proc/{pid}")]


def test_an_engine_that_is_not_there_is_told_when_it_is_asked(tmp_path: Path) -> None:
    """HLD-7: expecting answers of nobody is no error; asking is."""
    one = Engine(DOCKER, {"PATH": str(tmp_path)})
    one.expect("x:1")
    with pytest.raises(StartError, match="docker is not installed"):
        one.image("x:1")


def test_docker_removes_several_at_once_and_one_by_one_where_that_fails(tmp_path: Path) -> None:
    """HLD-8: its program removes them side by side; what it says no to is tried as ever."""
    asked = tmp_path / "asked"
    engine_that(tmp_path, f'echo "$*" >> {asked}').remove("a", "b")
    assert asked.read_text() == "rm --force --volumes a b\n"
    asked.unlink()
    script = f'echo "$*" >> {asked}; [ $# = 4 ] || {{ echo "did not receive an exit event" >&2; exit 1; }}'
    engine_that(tmp_path, script).remove("a", "b")
    assert asked.read_text().splitlines()[1:] == ["rm --force --volumes a", "rm --force --volumes b"]
    asked.unlink()
    engine_that(tmp_path, f'echo "$*" >> {asked}', PODMAN).remove("a", "b")
    assert len(asked.read_text().splitlines()) == 2
