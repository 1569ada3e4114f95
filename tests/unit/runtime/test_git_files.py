"""The files of a repository by which git runs something."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tidegate.runtime.git_files import led_to, repositories, repository_files

if TYPE_CHECKING:
    from pathlib import Path


def git(*words: str) -> None:
    """Run git without anybody's configuration."""
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    names = ["-c", "user.name=t", "-c", "user.email=t@t.test", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", *names, *words], check=True, capture_output=True, env=environment)


@pytest.fixture
def top(tmp_path: Path) -> str:
    """A repository with one commit."""
    top = os.path.realpath(tmp_path) + "/repo"
    git("init", "-q", top)
    git("-C", top, "commit", "-q", "--allow-empty", "-m", "first")
    return top


def test_the_top_is_found_from_below(top: str) -> None:
    """From a folder inside, and nowhere outside."""
    os.makedirs(f"{top}/a/b")
    assert repositories(f"{top}/a/b", {})[0] == f"{top}/.git"
    assert repositories("/nonexistent/x", {}) == ()


def test_configuration_and_hooks(top: str) -> None:
    """Both are found; what would lead git elsewhere and is not there is named (HLD-15)."""
    found, doubtful = repository_files(f"{top}/.git")
    assert {f"{top}/.git/config", f"{top}/.git/hooks"} <= set(found)
    assert f"{top}/.git/commondir" in doubtful
    assert f"{top}/.git/config.worktree" in doubtful


def test_a_missing_hooks_folder_is_made(top: str) -> None:
    """As `git init` does: it could not be kept from being made inside."""
    subprocess.run(["rm", "-r", f"{top}/.git/hooks"], check=True)
    assert f"{top}/.git/hooks" in repository_files(f"{top}/.git")[0]
    assert os.listdir(f"{top}/.git/hooks") == []


def test_a_linked_worktree_leads_to_its_repository(top: str) -> None:
    """`.git` is a file there, and it, what it leads to and the repository's files are found."""
    git("-C", top, "worktree", "add", "-q", f"{top}-wt")
    found, _ = repository_files(f"{top}-wt/.git")
    linked = f"{top}/.git/worktrees/repo-wt"
    assert {f"{top}-wt/.git", f"{top}/.git/config", f"{top}/.git/hooks", f"{linked}/commondir"} <= set(found)
    assert f"{linked}/gitdir" in repository_files(f"{top}/.git")[0]


def test_submodules_have_hooks_too(top: str, tmp_path: Path) -> None:
    """Each one's, also where its name has a slash in it."""
    other = f"{os.path.realpath(tmp_path)}/other"
    git("init", "-q", other)
    git("-C", other, "commit", "-q", "--allow-empty", "-m", "first")
    git("-C", top, "submodule", "add", "-q", other, "libs/one")
    found, _ = repository_files(f"{top}/.git")
    assert {f"{top}/.git/modules/libs/one/config", f"{top}/.git/modules/libs/one/hooks"} <= set(found)


def test_where_configuration_leads(top: str, tmp_path: Path) -> None:
    """A hooksPath from the work tree, includes from the file, `~` from the home, and what an included file says."""
    home = os.path.realpath(tmp_path)
    with open(f"{home}/more", "w", encoding="ascii") as file:
        file.write('[core] hooksPath = .husky/_\n[url "x"]\n\tpath=\n')
    with open(f"{top}/.git/config", "a", encoding="ascii") as file:
        file.write('[includeIf "gitdir:x"]\n\tpath = "../../more"\n[init]\n\ttemplateDir=~/t\n[x]\n  y = z\n')
    found = set(led_to([f"{top}/.git/config"], top, home))
    assert found == {f"{home}/more", f"{home}/t", f"{top}/.husky/_"}


def test_files_that_include_one_another_end(top: str) -> None:
    """A loop of includes is followed once."""
    with open(f"{top}/.git/config", "a", encoding="ascii") as file:
        file.write("[include]\n\tpath = config\n")
    assert set(led_to([f"{top}/.git/config"], top, "/h")) == {f"{top}/.git/config"}


@pytest.mark.parametrize("text", ["", "gitdir: {nowhere}\n", "\0\xff", "[core]\n"])
def test_a_git_file_that_leads_nowhere_is_protected_itself(tmp_path: Path, text: str) -> None:
    """It cannot be pointed elsewhere, whatever is in it."""
    text = text.replace("{nowhere}", f"{tmp_path}/nowhere")  # and no path that somebody may have made on this machine
    (tmp_path / ".git").write_text(text, encoding="latin-1")
    assert repository_files(f"{tmp_path}/.git") == ([f"{tmp_path}/.git"], [])


def test_every_repository_above_counts(top: str) -> None:
    """A task can make an own one in between, and the next run would look no further (HLD-15)."""
    os.makedirs(f"{top}/a/.git")
    assert repositories(f"{top}/a", {}) == (f"{top}/a/.git", f"{top}/.git")
    assert repositories("/nonexistent", {"GIT_DIR": f"{top}/.git"}) == (f"{top}/.git",)


def test_a_bare_repository_is_one(top: str) -> None:
    """Also without HEAD, which can be taken away inside; a folder with a `config` of another kind is none."""
    git("init", "-q", "--bare", f"{top}/b.git")
    os.unlink(f"{top}/b.git/HEAD")
    assert repositories(f"{top}/b.git", {})[0] == f"{top}/b.git"
    assert f"{top}/b.git/config" in repository_files(f"{top}/b.git")[0]
    os.mkdir(f"{top}/app")
    with open(f"{top}/app/config", "w", encoding="ascii") as file:
        file.write("port = 80\n")
    assert repositories(f"{top}/app", {}) == (f"{top}/.git",)


def test_a_new_commondir_leaves_nothing_open(top: str, tmp_path: Path) -> None:
    """The repository's own hooks are found all the same, and no folder is made where it leads (HLD-15)."""
    (tmp_path / "other").mkdir()
    with open(f"{top}/.git/commondir", "w", encoding="utf-8") as file:
        file.write(f"{tmp_path}/other\n")
    found, _ = repository_files(f"{top}/.git")
    assert {f"{top}/.git/config", f"{top}/.git/hooks", f"{top}/.git/commondir"} <= set(found)
    assert os.listdir(tmp_path / "other") == []


def test_a_submodule_without_head_is_found(top: str) -> None:
    """HEAD can be taken away inside, `config` cannot."""
    git("init", "-q", "--bare", f"{top}/.git/modules/deep/m")
    os.unlink(f"{top}/.git/modules/deep/m/HEAD")
    assert f"{top}/.git/modules/deep/m/hooks" in repository_files(f"{top}/.git")[0]


@pytest.mark.parametrize("where", ["modules", "worktrees"])
def test_too_many_names_hide_nothing(top: str, where: str) -> None:
    """With 257 of them their folder is read-only whole; with fewer it is not (HLD-15)."""
    for number in range(256):
        os.makedirs(f"{top}/.git/{where}/!{number}")
    assert f"{top}/.git/{where}" not in repository_files(f"{top}/.git")[0]
    os.makedirs(f"{top}/.git/{where}/m")
    assert f"{top}/.git/{where}" in repository_files(f"{top}/.git")[0]
