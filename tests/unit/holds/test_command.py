"""PATH search and why exec fails, in children that become the command (HLD-16)."""

from __future__ import annotations

import errno
import os

import pytest

from tidegate.holds.command import exec_command


@pytest.fixture
def bin_folders(tmp_path: object) -> tuple[str, str]:
    """Two folders of programs: `one` with odd things, `two` with good ones."""
    one, two = f"{tmp_path}/one", f"{tmp_path}/two"
    for folder in (one, two):
        os.mkdir(folder)
    make(f"{one}/plain", b"#!/bin/sh\necho not executable\n", 0o644)
    make(f"{one}/shadowed", b"#!/bin/sh\necho not executable\n", 0o644)
    make(f"{two}/shadowed", b"#!/bin/sh\necho second\n")
    make(f"{two}/script", b'#!/bin/sh\necho "$0" "$@" "$V"\n')
    make(f"{two}/bare", b'echo bare "$0" "$@"\n')
    make(f"{two}/empty", b"")
    make(f"{two}/foreign", b"\x7fELF\0\0garbage\n")
    make(f"{two}/orphan", b"#!/no/such/interpreter\n")
    os.mkdir(f"{one}/folder")
    make(f"{two}/folder", b"#!/bin/sh\necho found past the folder\n")
    os.symlink("nowhere", f"{one}/dangling")
    return one, two


def make(path: str, text: bytes, mode: int = 0o755) -> None:
    """Write a file."""
    with open(path, "wb") as file:
        file.write(text)
    os.chmod(path, mode)


def run(argv: list[str], env: dict[str, str], folder: str | None = None) -> tuple[int, str]:
    """Become the command in a child; return its status and output, or 255 and what exec_command returned."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(writing, 1)
            os.dup2(writing, 2)
            if folder is not None:
                os.chdir(folder)
            code, kind = exec_command(argv, env)
            os.write(1, f"{errno.errorcode[code]} {kind}".encode())
        finally:
            os._exit(255)
    os.close(writing)
    text = b""
    while part := os.read(reading, 65536):
        text += part
    os.close(reading)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), text.decode()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("script", (0, "{two}/script a b v\n")),
        ("shadowed", (0, "second\n")),  # a file that is not executable does not hide one that is
        ("folder", (0, "found past the folder\n")),
        ("bare", (0, "bare {two}/bare a b\n")),  # no #!: run by sh, as execvp does
        ("empty", (0, "")),
        ("plain", (255, "EACCES not-executable")),
        ("foreign", (255, "ENOEXEC cannot")),
        ("orphan", (255, "ENOENT interpreter")),
        ("dangling", (255, "ENOENT not-found")),
        ("nothing", (255, "ENOENT not-found")),
        ("", (255, "ENOENT not-found")),
        ("{two}/script", (0, "{two}/script a b v\n")),
        ("{one}/plain", (255, "EACCES not-executable")),
        ("{one}/folder", (255, "EACCES not-executable")),
        ("{two}/script/", (255, "ENOTDIR not-found")),
        ("{two}/nothing", (255, "ENOENT not-found")),
        ("{two}/orphan", (255, "ENOENT interpreter")),
    ],
)
def test_a_command_is_searched_as_a_shell_does(
    bin_folders: tuple[str, str], name: str, expected: tuple[int, str]
) -> None:
    """HLD-16: found, run or refused as POSIX says, and the reason tells 127 from 126."""
    one, two = bin_folders
    places = {"one": one, "two": two}
    status, text = expected
    env = {"PATH": f"{one}:{two}:/no/such/folder", "V": "v"}
    assert run([name.format(**places), "a", "b"], env) == (status, text.format(**places))


def test_the_search_path_is_the_tasks(bin_folders: tuple[str, str]) -> None:
    """The environment given decides, not ours; an empty part is the current folder; none at all the default."""
    _, two = bin_folders
    assert run(["bare"], {"PATH": "/bin"})[1] == "ENOENT not-found"
    assert run(["bare"], {"PATH": "/bin:"}, two) == (0, "bare bare\n")
    assert run(["bare"], {"PATH": "/bin"}, two)[0] == 255
    assert run(["sh", "-c", "echo ok"], {}) == (0, "ok\n")


def test_too_many_arguments_are_told_apart(bin_folders: tuple[str, str]) -> None:
    """E2BIG ends the search at once."""
    _, two = bin_folders
    assert run(["script", "x" * (1 << 20)], {"PATH": f"{two}:/bin"})[1] == "E2BIG cannot"


def test_a_nul_is_no_argument() -> None:
    """What cannot be passed to a program is reported, not raised."""
    assert run(["/bin/echo", "a\0b"], {})[1] == "EINVAL cannot"
