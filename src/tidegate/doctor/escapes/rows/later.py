"""Files of a person that would run outside later: start-up files, hooks, programs on the PATH, editors' tasks.

PERSON is a home folder beside the one that the other rows have, and is protected as the home of a run is; the
workspace is a repository. Both are looked at as by `tidegate run`, with `files: normal`.
"""

from __future__ import annotations

import os

from tidegate.doctor.escapes.table import HELD, HOMED, escape, neighbour
from tidegate.doctor.escapes.tools import mount, nested, number, syscall, umount

_TEXT = "#!/bin/sh\necho mine\n"
_REMOUNT = 0x1020  # MS_REMOUNT | MS_BIND
_EXCHANGE = 2
_DETACH = 2


def person(name: str = "") -> str:
    """A path in the person's home folder."""
    return os.path.join(HELD["person"], name) if name else HELD["person"]


def workspace(name: str) -> str:
    """A path in the workspace."""
    return os.path.join(HELD["workspace"], name)


def write(path: str) -> None:
    """Write there, whatever it is for."""
    with open(path, "a", encoding="ascii") as file:
        file.write(_TEXT)


def fresh() -> str:
    """A file of the task's own, to be put in the place of another."""
    path = workspace(f"fresh-{os.getpid()}")
    write(path)
    return path


@escape("EROFS")
def writing_a_start_up_file() -> None:
    """What each shell runs when it starts."""
    write(person(".bashrc"))


@escape("EROFS")
def making_a_start_up_file() -> None:
    """One that is not there yet."""
    write(person(".bash_profile"))


@escape("EROFS")
def making_a_start_up_file_by_a_descriptor() -> None:
    """The same by the folder's descriptor."""
    folder = os.open(person(), os.O_RDONLY)
    os.open(".profile", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=folder)


@escape("EROFS")
def making_a_start_up_file_as_a_link() -> None:
    """A symlink that leads to what the task writes."""
    os.symlink(workspace("mine"), person(".zprofile"))


@escape("EROFS", "EXDEV")
def making_a_start_up_file_of_another() -> None:
    """A file of this home folder that may be written, by another name."""
    os.link(person("notes"), person(".zlogin"))


@escape("EROFS", "EXDEV")
def replacing_the_configuration_of_ssh() -> None:
    """~/.ssh/config names programs that ssh runs."""
    os.replace(fresh(), person(".ssh/config"))


@escape("EROFS")
def a_key_that_may_log_in() -> None:
    """~/.ssh/authorized_keys lets others in."""
    write(person(".ssh/authorized_keys"))


@escape("EROFS", "EBUSY", "EXDEV")
def moving_a_folder_of_configuration() -> None:
    """~/.config by another name, with one of our own in its place."""
    os.makedirs(workspace("config"), exist_ok=True)
    syscall(
        number(316, 276),
        -100,
        os.fsencode(workspace("config")) + b"\0",
        -100,
        os.fsencode(person(".config")) + b"\0",
        _EXCHANGE,
    )


@escape("EROFS")
def an_entry_of_autostart() -> None:
    """What the desktop starts at log-in."""
    os.makedirs(person(".config/autostart"))


@escape("EROFS")
def a_unit_of_the_person() -> None:
    """A service of the person's systemd."""
    os.makedirs(person(".config/systemd/user"))


@escape("EROFS")
def a_program_on_the_path() -> None:
    """A name that is typed later."""
    write(person("tools/ls"))


@escape("EROFS")
def making_a_folder_on_the_path() -> None:
    """~/bin, which a log-in shell puts on the PATH as soon as it is there."""
    os.mkdir(person("bin"))


@escape("EROFS")
def settings_of_an_agent() -> None:
    """Hooks of a coding agent."""
    write(person(".claude/settings.json"))


@escape("EROFS")
def a_hook_of_git() -> None:
    """A hook of the workspace's repository."""
    write(workspace(".git/hooks/pre-commit"))


@escape("EBUSY")
def replacing_the_hooks_of_git() -> None:
    """The folder of hooks by another name."""
    os.rename(workspace(".git/hooks"), workspace(".git/old"))


@escape("EBUSY", "EROFS")
def replacing_the_configuration_of_git() -> None:
    """.git/config names programs that git runs."""
    os.replace(fresh(), workspace(".git/config"))


@escape("EBUSY")
def replacing_the_repository() -> None:
    """The whole .git by another name."""
    os.rename(workspace(".git"), workspace("git"))


@escape("EROFS")
def tasks_of_an_editor() -> None:
    """.vscode/tasks.json runs when the folder is opened."""
    write(workspace(".vscode/tasks.json"))


@escape("EBUSY")
def replacing_the_tasks_of_an_editor() -> None:
    """The folder around it by another name."""
    os.rename(workspace(".vscode"), workspace("vscode"))


@escape("EPERM")
def making_a_home_writable_again() -> None:
    """Remounted from namespaces inside."""
    nested()
    mount("", person(), "", _REMOUNT)


@escape("EPERM")
def uncovering_a_home() -> None:
    """Unmounted, with all that is mounted in it."""
    umount(person(), _DETACH)


@neighbour(holds=HOMED)
def what_is_no_start_up_file() -> None:
    """Files and folders of the home that run nothing, and the code of the workspace, can be written and replaced."""
    for path in (person("notes"), person("projects/x"), person(".claude/history"), workspace("Makefile")):
        write(path)
    os.replace(fresh(), workspace("package.json"))
    write(workspace(".git/index.lock"))
    os.rename(workspace(".git/index.lock"), workspace(".git/index"))
