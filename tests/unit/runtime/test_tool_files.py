"""tidegate.runtime.tool_files: who declares tools, and what a task could change of one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from tests.product import PYTHON
from tidegate.holds.mountinfo import Mount
from tidegate.model.errors import StartError, UsageError
from tidegate.runtime import tool_files
from tidegate.runtime.task import Order
from tidegate.runtime.tool_files import FILE, declared, fenced, interpreter_of, missing, steps, tools_of
from tidegate.tools.declaration import Tool

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration folder with two tools."""
    folder = tmp_path / "config"
    folder.mkdir(mode=0o700)
    text = "tools:\n  one: {command: [/bin/true], description: x}\n  gone: {command: [/nowhere/x], description: x}\n"
    (folder / FILE).write_text(text)
    (folder / FILE).chmod(0o600)
    return folder


@pytest.fixture
def persons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of a person's own, that is no temporary one: pytest's lie in /tmp."""
    monkeypatch.setattr(tool_files, "_TEMPORARY", ("/dev/shm",))
    return tmp_path


def order(folder: Path, **more: Any) -> Order:
    """A task in a folder."""
    fields: dict[str, Any] = {
        "task": "t", "phase": "runtime", "command": ("true",), "folder": str(folder), "environ": {}, "shares": (),
        "hidden": (), "readonly": (), "selftest": True, "log": "",
    }  # fmt: skip
    return Order(**(fields | more))


def tool(*command: str) -> Tool:
    """A tool with this command."""
    return Tool("t", command, "", {}, "tools.yaml:2:3")


def test_tools_are_found_by_name(config: Path) -> None:
    """SRV-6: the person's file declares; a name is given once."""
    assert [one.name for one in declared(str(config))] == ["one", "gone"]
    assert [one.name for one in tools_of(["one", "one"], str(config))] == ["one"]
    assert declared(str(config / "none")) == ()


def test_a_tool_that_is_not_there_is_an_error(config: Path) -> None:
    """SRV-6, HLD-16: an unknown name says which there are; a missing program stops the start."""
    with pytest.raises(UsageError, match="there is no tool 'two'") as raised:
        tools_of(["two"], str(config))
    assert raised.value.fix == "one of one, gone"
    with pytest.raises(StartError, match="'/nowhere/x' is no file"):
        tools_of(["gone"], str(config))


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_file_that_others_can_write_declares_nothing(config: Path, what: str) -> None:
    """SRV-6: whoever writes it says what runs outside of every hold."""
    path = config / FILE if what == "file" else config
    path.chmod(path.stat().st_mode | 0o020)
    with pytest.raises(StartError, match="others than you could change it") as raised:
        declared(str(config))
    assert raised.value.fix == f"chmod go-w {path}"


def test_the_administrators_tools_are_above(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SRV-6, POL-8: they are there too; a person cannot put another in the place of one."""
    if os.geteuid() != 0:
        pytest.skip("only root's files are an administrator's")
    folder = tmp_path / "etc"
    folder.mkdir(mode=0o755)
    monkeypatch.setattr(tool_files, "FOLDER", str(folder))
    (folder / FILE).write_text("tools: {two: {command: [/bin/true], description: x}}")
    assert [one.name for one in declared(str(config))] == ["two", "one", "gone"]
    (folder / FILE).write_text("tools: {one: {command: [/bin/false], description: x}}")
    with pytest.raises(UsageError, match="the administrator's already"):
        declared(str(config))
    (folder / FILE).chmod(0o666)
    with pytest.raises(StartError, match="the administrator's tools"):
        declared(str(config))


def test_a_program_that_cannot_run_is_missing(tmp_path: Path) -> None:
    """SRV-6: no file, a folder, and one that cannot be executed."""
    plain = tmp_path / "plain"
    plain.touch(mode=0o600)
    assert missing(tool("/bin/true")) == ""
    assert "is no file" in missing(tool(str(tmp_path)))
    if os.geteuid() != 0:
        assert "cannot be executed" in missing(tool(str(plain)))


@pytest.mark.parametrize("words", [("{w}/x",), (PYTHON, "{w}/x"), (PYTHON, "--file={w}/x"), ("{link}",), ("{far}",)])
def test_what_a_task_can_write_is_never_run(persons: Path, words: tuple[str, ...]) -> None:
    """SRV-6, HLD-15: a program or an argument in the workspace, whatever links lead there or over it."""
    workspace, safe = persons / "work", persons / "safe"
    workspace.mkdir()
    safe.mkdir()
    (workspace / "x").touch(mode=0o700)
    (safe / "link").symlink_to(workspace / "x")
    (safe / "real").touch(mode=0o700)
    (workspace / "there").symlink_to(safe / "real")
    (safe / "far").symlink_to(workspace / "there")  # it ends in a safe place, by a link that a task can change
    command = [word.format(w=workspace, link=safe / "link", far=safe / "far") for word in words]
    with pytest.raises(StartError, match="which a task can write"):
        fenced(order(workspace), [tool(*command)], "")
    assert fenced(order(persons / "other"), [tool(*command)], "").tools == ("t",)


@pytest.mark.parametrize(
    "words", ["{w}/late", "--file={w}/late", "PYTHONPATH=/usr/lib:{w}/late", "-I{w}/late", "@{w}/late", "{link}"]
)
def test_what_a_task_could_make_is_never_run(persons: Path, words: str) -> None:
    """SRV-6, HLD-15: an argument that is not there at the start, at a place where the task can make it."""
    workspace = persons / "work"
    workspace.mkdir()
    (persons / "link").symlink_to(workspace / "late")
    command = (PYTHON, words.format(w=workspace, link=persons / "link"))
    with pytest.raises(StartError, match="which a task can write"):
        fenced(order(workspace), [tool(*command)], "")
    assert fenced(order(persons / "other"), [tool(*command)], "").tools == ("t",)


def test_a_word_that_is_no_file_asks_for_nothing() -> None:
    """SRV-6: an argument with a slash that no task could make changes nothing of the task's files."""
    made = fenced(order(tool_files_home()), [tool("/bin/true", "/v1/charges", "s/=/x/", "a=b")], "")
    assert made.strict == (os.geteuid() == 0)


def test_what_runs_the_interpreter_counts_too(persons: Path) -> None:
    """SRV-6, HLD-15: an interpreter may be a script itself, of the workspace's interpreter (execve(2))."""
    workspace, script, middle = persons / "work", persons / "script", persons / "middle"
    middle.write_text(f"#!{workspace}/sh\n")
    script.write_text(f"#!{middle}\n")
    with pytest.raises(StartError, match="which a task can write"):
        fenced(order(workspace), [tool(str(script))], "")
    middle.write_text(f"#!{middle}\n")  # in circles, which the kernel refuses to run
    assert fenced(order(workspace), [tool(str(script))], "").tools == ("t",)


def test_what_runs_a_script_counts_too(persons: Path) -> None:
    """SRV-6, HLD-15: a script in a safe place that an interpreter of the workspace would run."""
    workspace, script = persons / "work", persons / "script"
    script.write_text(f"#! {workspace}/venv/bin/python -I\n")
    with pytest.raises(StartError, match="which a task can write"):
        fenced(order(workspace), [tool(str(script))], "")
    script.write_text("#!/bin/sh\n")
    assert fenced(order(workspace), [tool(str(script))], "").tools == ("t",)
    assert [interpreter_of(path) for path in (str(script), "/bin/true", "/nowhere")] == ["/bin/sh", "", ""]


def test_shares_and_caches_count_too(persons: Path) -> None:
    """SRV-6: what is shared to be written, and the folders that stay writable; a share to be read does not."""
    from tidegate.cli.run_options import Share

    place = persons / "place"
    place.mkdir()
    (place / "x").touch(mode=0o700)
    workspace = persons / "work"
    one = [tool(str(place / "x"))]
    for more in ({"shares": (Share(str(place), readonly=False),)}, {"writable": (str(place),)}):
        with pytest.raises(StartError, match="which a task can write"):
            fenced(order(workspace, **more), one, "")
    assert fenced(order(workspace, shares=(Share(str(place), readonly=True),)), one, "").tools == ("t",)


def test_what_is_bound_elsewhere_is_the_same(persons: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SRV-6, HLD-15: a task's folder under another name of the same mount; what is bound beside it is its neighbour."""
    inner = persons / "work" / "bin"
    for place in (inner, persons / "beside", persons / "seen"):
        place.mkdir(parents=True)
    (persons / "seen" / "program").write_text("#!/bin/true\n")
    named = str(persons / "seen" / "program")
    for root, refused in ((inner, True), (persons / "beside", False)):
        table = (Mount("8:1", "/", "/", "ext4"), Mount("8:1", str(root), str(persons / "seen"), "ext4"))
        monkeypatch.setattr(tool_files, "read_mounts", lambda table=table: table)
        if refused:
            with pytest.raises(StartError, match="which a task can write"):
                fenced(order(persons / "work"), [tool(named)], "")
        else:
            assert fenced(order(persons / "work"), [tool(named)], "").tools == ("t",)


def test_temporary_folders_hold_no_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SRV-6: others write there, under some holds the task too."""
    monkeypatch.setattr(tool_files, "_TEMPORARY", (str(tmp_path),))
    (tmp_path / "x").touch(mode=0o700)
    with pytest.raises(StartError, match="move it out of"):
        fenced(order(tmp_path / "work"), [tool(str(tmp_path / "x"))], "")


def test_a_users_own_tool_makes_the_task_strict(persons: Path) -> None:
    """SRV-6, HLD-15: where this user could write the program, the task gets `files: strict`; `normal` is an error."""
    (persons / "x").touch(mode=0o700)
    own = [tool(str(persons / "x"))]
    assert fenced(order(persons / "work"), own, "").strict
    with pytest.raises(StartError, match="files: normal"):
        fenced(order(persons / "work"), own, "normal")


def test_the_machines_own_tool_changes_nothing() -> None:
    """SRV-6: of a program that only root can write nothing has to be protected from another user's task."""
    made = fenced(order(tool_files_home()), [tool("/bin/true")], "normal" if os.geteuid() else "")
    assert made.strict == (os.geteuid() == 0)
    assert fenced(order(tool_files_home()), [], "normal").tools == ()


def tool_files_home() -> Path:
    """A workspace that holds no program."""
    from pathlib import Path

    return Path("/nonexistent/work")


def test_a_way_is_followed_step_by_step(tmp_path: Path) -> None:
    """SRV-6: links of every kind; one that goes in circles is refused."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "up").symlink_to("..")
    (tmp_path / "b").symlink_to("a/up/c")
    (tmp_path / "c").touch()
    found = steps(str(tmp_path / "b"))
    assert found[-1] == str(tmp_path / "c")
    assert str(tmp_path / "a" / "up") in found
    assert os.path.realpath(tmp_path / "b") == found[-1]
    (tmp_path / "x").symlink_to("y")
    (tmp_path / "y").symlink_to("x")
    with pytest.raises(StartError, match="in circles"):
        steps(str(tmp_path / "x"))
