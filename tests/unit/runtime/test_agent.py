"""Which agent a command is: by a person's word, or by its name and a place no task can write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.accounts import need_roots_files
from tidegate.model.errors import StartError, UsageError
from tidegate.policy.harnesses import Harness, HarnessHost, built_in, harness_layer
from tidegate.policy.layers import command_line, join
from tidegate.runtime.agent import (
    Agent,
    agent_files,
    find_harness,
    harness_file,
    named_agent,
    recognised_agent,
    require_way_out,
    what_runs,
)

API = "api.anthropic.com:443"


class Place:
    """A workspace and a folder on PATH beside it."""

    def __init__(self, root: Path) -> None:
        need_roots_files()
        root.chmod(0o755)
        self.work = root / "project"
        self.bin = root / "project2"  # a name that begins like the workspace's is not within it
        self.work.mkdir()
        self.bin.mkdir()
        self.path = [str(self.bin)]

    def put(self, where: Path, name: str = "claude", text: str = "#!/bin/sh\n", mode: int = 0o755) -> Path:
        """Write a program."""
        where.mkdir(parents=True, exist_ok=True)
        (where / name).write_text(text, encoding="utf-8")
        (where / name).chmod(mode)
        return where / name

    @property
    def environ(self) -> dict[str, str]:
        """The caller's environment."""
        return {"PATH": ":".join(self.path)}

    def see(self, command: str = "claude", *shared: str, phase: str = "runtime") -> Agent | None:
        """Return what a run in the workspace sees in a command."""
        return recognised_agent(command, phase, self.environ, str(self.work), (str(self.work), *shared))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """An empty place."""
    return Place(tmp_path)


def test_a_program_outside_the_workspace_is_recognised(place: Place) -> None:
    """A known name on PATH, where no task writes, is the agent; what runs is that file (POL-10)."""
    program = place.put(place.bin)
    agent = place.see()
    assert agent == Agent(built_in("claude"), str(program))  # type: ignore[arg-type]
    assert place.see(str(program)) == agent
    assert place.see(os.path.relpath(program, place.work)) is not None


@pytest.mark.parametrize("command", ["Claude", "claude2", "myclaude", "claude.exe", "env", "", "sh"])
def test_other_names_are_no_agent(place: Place, command: str) -> None:
    """Only the exact file name counts, and only of the command itself: `env claude` is `env` (POL-12)."""
    place.put(place.bin, command or "claude")
    assert place.see(command) is None


def test_what_cannot_run_is_no_agent(place: Place) -> None:
    """A name that is not there, is a folder or may not be executed is passed over, as a shell does."""
    assert place.see() is None
    (place.bin / "claude").mkdir()
    assert place.see() is None
    other = place.bin / "more"
    place.put(other, mode=0o644)
    place.path.append(str(other))
    assert place.see() is None or os.geteuid() == 0
    assert place.see("./claude") is None


def test_only_the_runtime_phase_has_agents(place: Place) -> None:
    """A command of the install phase gets no agent's hosts (POL-7)."""
    place.put(place.bin)
    assert place.see() is not None
    assert place.see(phase="install") is None


def _in_the_workspace(place: Place) -> str:
    place.put(place.work)
    return "./claude"


def _in_a_folder_of_the_workspace_on_path(place: Place) -> str:
    place.put(place.work / "node_modules" / ".bin")
    place.put(place.bin)
    place.path.insert(0, str(place.work / "node_modules" / ".bin"))
    return "claude"


def _by_an_empty_entry_of_path(place: Place) -> str:
    place.put(place.work)
    place.path.insert(0, "")
    return "claude"


def _by_a_link_into_the_workspace(place: Place) -> str:
    (place.bin / "claude").symlink_to(place.put(place.work, "other"))
    return "claude"


def _by_a_link_through_the_workspace(place: Place) -> str:
    real = place.put(place.bin / "real")
    (place.work / "link").symlink_to(real.parent)
    (place.bin / "claude").symlink_to(place.work / "link" / "claude")
    return "claude"


def _by_an_interpreter_of_the_workspace(place: Place) -> str:
    place.put(place.bin, text=f"#!{place.put(place.work, 'node')}\n")
    return "claude"


def _by_an_interpreter_that_env_finds_there(place: Place) -> str:
    place.put(place.work / "bin", "node")
    place.put(place.bin, text="#!/usr/bin/env -S NODE_OPTIONS= node --x\n")
    place.put(place.bin, "node")
    place.path.insert(0, "bin")
    return "claude"


def _writable_by_others(place: Place) -> str:
    place.put(place.bin, mode=0o757)
    return "claude"


def _in_a_folder_writable_by_others(place: Place) -> str:
    place.put(place.bin)
    place.bin.chmod(0o757)
    return "claude"


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (_in_the_workspace, "a task can write"),
        (_in_a_folder_of_the_workspace_on_path, "a task can write"),
        (_by_an_empty_entry_of_path, "a task can write"),
        (_by_a_link_into_the_workspace, "a task can write"),
        (_by_a_link_through_the_workspace, "a task can write"),
        (_by_an_interpreter_of_the_workspace, "a task can write"),
        (_by_an_interpreter_that_env_finds_there, "a task can write"),
        (_writable_by_others, "written by other users"),
        (_in_a_folder_writable_by_others, "other users can write"),
    ],
)
def test_what_a_task_may_have_written_is_not_taken_for_the_agent(place: Place, make: object, why: str) -> None:
    """A script under an agent's name gets nothing in silence: it is doubted, adds no host, and the note says so."""
    agent = place.see(make(place))  # type: ignore[operator]
    assert agent is not None
    assert why in agent.doubt
    assert agent.layer("balanced") is None
    assert "--harness claude" in agent.note(join())


def test_a_sticky_folder_of_everybody_is_no_doubt(place: Place) -> None:
    """In a folder like /tmp nobody replaces what is this user's."""
    place.put(place.bin)
    place.bin.chmod(0o1777)
    agent = place.see()
    assert agent is not None
    assert agent.doubt == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file away")
def test_another_users_program_is_doubted(place: Place) -> None:
    """What belongs to neither root nor this user can change under it; a link of somebody else too."""
    os.chown(place.put(place.bin), 12345, 12345)
    agent = place.see()
    assert agent is not None
    assert "other users" in agent.doubt
    os.chown(place.bin / "claude", 0, 0)
    assert place.see().doubt == ""  # type: ignore[union-attr]
    (place.bin / "claude").rename(place.bin / "real")
    (place.bin / "claude").symlink_to("real")
    os.lchown(place.bin / "claude", 12345, 12345)
    assert "other users" in place.see().doubt  # type: ignore[union-attr]


def test_a_program_with_a_name_elsewhere_is_doubted(place: Place) -> None:
    """By a hard link in a cache or in a workspace a task could change it; a name beside it is covered with it."""
    program = place.put(place.bin)
    os.link(program, place.bin / "cache")
    assert "hard link" in place.see().doubt  # type: ignore[union-attr]
    (place.bin / "cache").unlink()
    assert place.see().doubt == ""  # type: ignore[union-attr]
    program.unlink()
    package = place.put(place.bin / "node_modules" / "@scope" / "agent" / "bin", "claude.exe")
    program.symlink_to(package)
    twin = place.bin / "node_modules" / "@scope" / "agent-linux-x64"
    twin.mkdir()
    os.link(package, twin / "claude")
    assert place.see().doubt == ""  # type: ignore[union-attr]
    os.link(package, place.bin / "cache")
    assert "hard link" in place.see().doubt  # type: ignore[union-attr]


def test_what_is_shared_to_write_counts_as_the_workspace(place: Place) -> None:
    """`--share PATH` lets a task write there; a share that is read-only is not among these paths."""
    place.put(place.bin)
    assert place.see("claude", str(place.bin)).doubt  # type: ignore[union-attr]
    assert place.see("claude", str(place.bin) + "x").doubt == ""  # type: ignore[union-attr]


def test_a_workspace_of_everything_leaves_no_place(place: Place) -> None:
    """Run in `/`, every program lies in the workspace."""
    program = place.put(place.bin)
    agent = recognised_agent(str(program), "runtime", place.environ, "/", ("/",))
    assert agent is not None
    assert agent.doubt


def test_what_runs(place: Place) -> None:
    """The program as found, the outermost node_modules around it, its interpreters; nothing for what is not there."""
    environ, work = place.environ, str(place.work)
    binary = place.put(place.bin, "binary", "\x7fELF")
    assert what_runs("binary", environ, work) == (str(binary),)
    assert what_runs("absent", environ, work) == ()
    assert what_runs("", environ, work) == ()
    script = place.put(place.bin, "script", "#! /bin/sh -e\n")
    assert what_runs("script", environ, work) == (str(script), "/bin/sh")
    package = place.bin / "node_modules" / "@scope" / "agent"
    place.put(package / "bin", "agent.js", "#!/usr/bin/env node\n")
    node = place.put(place.bin, "node", "\x7fELF")
    link = place.bin / "agent"
    link.symlink_to(package / "bin" / "agent.js")
    modules = str(place.bin / "node_modules")
    assert what_runs("agent", environ, work) == (str(link), modules, "/usr/bin/env", str(node))
    nested = place.put(package / "node_modules" / "plain", "run", "")
    assert what_runs(str(nested), environ, work) == (str(nested), modules)


def test_the_files_of_agents_are_for_every_tasks_hold(place: Place) -> None:
    """What runs a known agent is named whatever the command is, also within a workspace: it may be the home."""
    assert list(agent_files(place.environ, str(place.work))) == []
    program = place.put(place.bin)
    for folder in (place.work, place.bin, Path("/")):
        assert list(agent_files(place.environ, str(folder))) == [str(program), "/bin/sh"]
    place.path = ["", "bin", "."]
    place.put(place.work / "bin")
    assert list(agent_files(place.environ, str(place.work))) == []


def test_an_agent_that_a_project_brings_along_is_not_recognised(place: Place) -> None:
    """What is in a project's `node_modules/.bin` stays writable for its tasks, so it is doubted from anywhere."""
    modules = place.bin / "node_modules" / ".bin"
    place.put(modules)
    place.path = [str(modules)]
    assert list(agent_files(place.environ, str(place.work))) == []
    assert "not the one that every task sees read-only" in place.see().doubt  # type: ignore[union-attr]


def test_an_agent_beside_path_is_not_recognised(place: Place) -> None:
    """A path that PATH does not lead to is protected in no task: one in another project could be that task's work."""
    place.put(place.bin)
    other = place.put(place.bin / "other-project")
    agent = place.see(str(other))
    assert agent is not None
    assert "not the one that every task sees read-only" in agent.doubt
    link = place.bin / "link"
    link.mkdir()
    (link / "claude").symlink_to(place.bin / "claude")
    assert place.see(str(link / "claude")).doubt == ""  # type: ignore[union-attr]


def test_a_name_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NAME is one that comes with tidegate, whatever lies in the folder; FILE has a slash or an ending."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "claude").write_text("name: spoof\ncommand: claude\n", encoding="utf-8")
    (tmp_path / "h.yaml").write_text("name: mine\ncommand: agent\n", encoding="utf-8")
    assert find_harness("claude") == built_in("claude")
    assert find_harness("h.yaml") == find_harness("./h.yaml") == Harness("mine", "agent")
    assert [harness_file(text) for text in ("", "claude", "./claude", "h.yaml")] == ["", "", "./claude", "h.yaml"]
    for text, said in (
        ("clause", "there is no such harness"),
        ("absent.yaml", "the harness file 'absent.yaml' cannot be read"),
        (".", "there is no such harness"),
        ("./", "is a folder"),
    ):
        with pytest.raises(UsageError, match=said):
            find_harness(text)
    (tmp_path / "bad.yaml").write_text("name: mine\ncommand: a/b\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"^bad\.yaml:2:10: 'command' has another form: 'a/b'"):
        find_harness("bad.yaml")


def test_a_named_harness_is_for_its_own_command() -> None:
    """A person's word suffices wherever the program lies, but only for the harness's command and phase (POL-12)."""
    for command in ("claude", "./claude", "/work/claude"):
        assert named_agent("claude", command, "runtime", {}) == Agent(built_in("claude"))  # type: ignore[arg-type]
    for command in ("bash", "codex", "claude.sh", "env"):
        with pytest.raises(UsageError, match="is for the command 'claude'"):
            named_agent("claude", command, "runtime", {})
    with pytest.raises(UsageError, match="no meaning in the phase install"):
        named_agent("claude", "claude", "install", {})


def test_one_that_knows_no_proxies_needs_capture() -> None:
    """Under a hold without capture it is a configuration error by name; with capture it starts (POL-12)."""
    unaware = Agent(Harness("cursor", "cursor-agent", proxy_aware=False))
    with pytest.raises(StartError, match="'cursor' is not proxy aware") as raised:
        require_way_out(unaware, "off")
    assert raised.value.exit_status == 78
    for capture in ("on", "ports"):
        require_way_out(unaware, capture)
    require_way_out(Agent(Harness("aware", "aware")), "off")


@pytest.mark.parametrize(
    ("profile", "recognised", "named"),
    [("balanced", 1, 3), ("careful", 1, 3), ("closed", 0, 3), ("audit", 0, 3), (None, 0, 3)],
)
def test_what_it_adds(profile: str | None, recognised: int, named: int) -> None:
    """Recognised: the model API, where the profile says so. Named: every host, whatever the policy (POL-10, POL-12)."""
    claude = built_in("claude")
    assert claude is not None
    layer = Agent(claude, "/usr/bin/claude").layer(profile)
    assert len(layer.rows if layer is not None else ()) == recognised
    layer = Agent(claude).layer(profile)
    assert layer is not None
    assert len(layer.rows) == named


def test_a_model_that_is_not_verified_is_not_added() -> None:
    """A recognised agent gets only what was checked."""
    harness = Harness("a", "a", hosts=(HarnessHost("api.test:443"),), model_api=("api.test:443",))
    assert Agent(harness, "/usr/bin/a").layer("balanced") is None


def test_the_note_says_what_came_of_it() -> None:
    """A person reads which program was taken for which agent, and what it reaches or not."""
    claude = built_in("claude")
    assert claude is not None
    seen = Agent(claude, "/usr/bin/claude")
    own = harness_layer(claude, claude.own_model_api)
    assert seen.note(join(own)) == (
        f"/usr/bin/claude is taken for Claude Code, which reaches its model: {API} (harness:claude); "
        "--harness claude adds its other hosts"
    )
    not_through = "/usr/bin/claude is Claude Code, whose model this policy does not let through"
    assert seen.note(join(command_line(profile="closed"))) == f"{not_through}; --harness claude adds it"
    assert seen.note(join(own, command_line(deny=["**.anthropic.com"]))) == not_through
    assert seen.note(join(command_line(profile="audit"))) == ""
    assert seen.note(join(command_line(profile="closed", allow=[API]))) == ""
    assert Agent(claude).note(join(harness_layer(claude))) == (
        "harness claude adds api.anthropic.com:443, platform.claude.com:443, claude.ai:443 (unverified: claude.ai:443)"
    )
    assert Agent(Harness("none", "none")).note(join()) == "harness none adds no host"


@pytest.mark.parametrize(
    ("environ", "joins"),
    [
        ({}, False),
        ({"ANTHROPIC_API_KEY": "x"}, True),
        ({"ANTHROPIC_API_KEY": ""}, False),
        ({"ANTHROPIC_API_KEY": "x", "FACTORY_API_KEY": "y"}, False),
        ({"FACTORY_API_KEY": "y"}, False),
    ],
)
def test_droid_reaches_anthropic_with_that_key_alone(environ: dict[str, str], joins: bool) -> None:
    """INS-8: and is guarded there then; other harnesses are as they are."""
    agent = named_agent("droid", "droid", "runtime", environ)
    layer = agent.layer(None)
    assert layer is not None
    assert (("api.anthropic.com", 443) in layer.guarded) is joins
    assert [row[0] for row in layer.rows][:2] == ["api.factory.ai:443", "app.factory.ai:443"]
    assert ("api.factory.ai", 443) in layer.guarded
    assert ("api.anthropic.com:443" in agent.harness.model_api) is joins
    assert named_agent("claude", "claude", "runtime", environ).harness == built_in("claude")
