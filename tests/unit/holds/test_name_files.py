"""The files that turn names into addresses, as a task sees them."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

import pytest

from tests.unit.holds.apart import apart
from tidegate.holds import name_files

if TYPE_CHECKING:
    from pathlib import Path


def test_resolv_conf_names_the_gate_and_searches_nothing() -> None:
    """HLD-6, ADR-4: one server, an empty search list: a name is looked up as it was written."""
    lines = name_files.RESOLV_TEXT.splitlines()
    assert "nameserver 198.18.0.2" in lines
    assert "search ." in lines
    assert sum(line.startswith("nameserver") for line in lines) == 1


@pytest.mark.parametrize(
    ("hostname", "names"),
    [
        ("box", ("box",)),
        ("box.corp.example", ("box.corp.example", "box")),
        ("localhost", ()),
        ("", ()),
        ("two words", ()),
        ("10.0.0.1", ("10",)[:0]),
        ("a\nb", ()),
    ],
)
def test_a_tasks_own_names(hostname: str, names: tuple[str, ...]) -> None:
    """B80: the host name, whole and short, is the task's own; what could be read as something else is not."""
    assert name_files.own_names(hostname) == names


def test_hosts_has_the_tasks_own_names_alone() -> None:
    """ADR-4: names of the machine's file are not in it; localhost and the host name lead to loopback."""
    assert name_files.hosts_text("box.corp") == (
        "127.0.0.1 localhost box.corp box\n::1 localhost ip6-localhost ip6-loopback box.corp box\n"
    )
    assert name_files.hosts_text("") == "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"


@pytest.mark.parametrize(
    "line",
    [
        "hosts: files mdns4_minimal [NOTFOUND=return] resolve [!UNAVAIL=return] myhostname dns",
        "  hosts:\tdns",
        "hosts : x",
        "",
    ],
)
def test_only_the_hosts_line_of_nsswitch_changes(line: str) -> None:
    """B88: mdns, resolve and myhostname are not asked; users, groups and the rest stay as the machine has them."""
    text = f"passwd: files sss\n# hosts: a comment\n{line}\ngroup: files # hosts: x\n"
    lines = name_files.nsswitch_text(text).splitlines()
    assert [one for one in lines if one.startswith("hosts") or one.lstrip().startswith("hosts")] == ["hosts: files dns"]
    assert lines[:2] == ["passwd: files sss", "# hosts: a comment"]
    assert "group: files # hosts: x" in lines


def test_a_place_is_found_as_the_task_will_see_it(tmp_path: Path) -> None:
    """A file is itself, a symlink what it leads to; into a folder of the task's own, even where nothing is (B88)."""
    base = os.path.realpath(tmp_path)
    etc, run, other = f"{base}/etc", f"{base}/run", f"{base}/other"
    for folder in (etc, run, other):
        os.makedirs(folder)
    for name in ("plain", "../other/file"):
        open(f"{etc}/{name}", "w").close()
    os.symlink("../run/systemd/resolve/stub", f"{etc}/stub")
    os.symlink(f"{run}/hop", f"{etc}/hop")
    os.symlink("/elsewhere", f"{run}/hop")
    os.symlink("../other/file", f"{etc}/file")
    os.symlink("second", f"{etc}/first")
    os.symlink("plain", f"{etc}/second")
    os.symlink("loop", f"{etc}/loop")
    os.symlink("../other/absent", f"{etc}/dangling")

    def place(name: str, bound: tuple[str, ...] = ()) -> str:
        return name_files.place_of(f"{etc}/{name}", (run,), bound)

    assert place("plain") == f"{etc}/plain"
    assert place("first") == f"{etc}/plain"
    assert place("file") == f"{other}/file"
    assert place("stub") == f"{run}/systemd/resolve/stub"
    assert place("hop") == f"{run}/hop"
    assert (place("absent"), place("dangling"), place("loop")) == ("", "", "")
    # A folder of the machine that is bound back is the machine's: nothing is made there.
    assert place("stub", (run,)) == ""


def test_they_are_bound_read_only_over_the_machines() -> None:
    """The machine's file stays what it was; what is bound over it can be read by all and written by nobody."""
    code = """
    from tidegate.holds import device, name_files
    from tidegate.holds.masks import Masks
    folder = sys.argv[1]
    target = folder + '/resolv.conf'
    with open(target, 'w') as file:
        file.write('the machine')
    seen = os.open(target, os.O_RDONLY)
    inside()
    Masks()
    name_files.put(name_files.take([name_files.NameFile(target, 'ours'), name_files.NameFile(folder + '/x/y', 'made')]))
    mode = oct(os.stat(target).st_mode & 0o777)
    print(open(target).read(), os.read(seen, 99).decode(), mode, open(folder + '/x/y').read())
    print(attempt(open, target, 'w'), attempt(os.unlink, target), attempt(os.rename, target, folder + '/z'))
    """
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:  # /tmp is the task's own
        lines = apart(code, folder).splitlines()
    assert lines == ["ours the machine 0o644 made", "EROFS EBUSY EBUSY"]
