"""What is mounted where, and under which other names things are reached."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.holds.mountinfo import Mount, aliases, is_within, mount_of, parse_mounts, places_of, read_mounts

TABLE = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
23 22 0:21 / /proc rw,nosuid - proc proc rw
24 22 254:0 /srv/data /mnt/with\\040space rw master:2 propagate_from:3 - ext4 /dev/vda rw
25 22 254:1 / /home rw - ext4 /dev/vdb rw
26 22 254:1 /ann /mnt/ann rw - ext4 /dev/vdb rw
27 22 254:1 /ann/.config/tidegate /mnt/config rw - ext4 /dev/vdb rw
28 22 254:1 /bob /mnt/bob rw - ext4 /dev/vdb rw
"""
MOUNTS = parse_mounts(TABLE)


def test_lines_are_read_by_their_columns() -> None:
    """Optional fields, escapes and kinds are told apart (proc_pid_mountinfo(5))."""
    assert MOUNTS[0] == Mount("254:0", "/", "/", "ext4")
    assert MOUNTS[1] == Mount("0:21", "/", "/proc", "proc")
    assert MOUNTS[2] == Mount("254:0", "/srv/data", "/mnt/with space", "ext4")


@pytest.mark.parametrize(
    ("escaped", "plain"),
    [
        ("/a\\134b", "/a\\b"),
        ("/a\\011b\\012", "/a\tb\n"),
        ("/\\303\\244", "/ä"),
        ("/plain", "/plain"),
        ("/a\\", "/a\\"),
    ],
)
def test_escapes(escaped: str, plain: str) -> None:
    """The kernel's octal escapes are undone, and nothing else."""
    assert parse_mounts(f"1 1 0:1 / {escaped} rw - tmpfs x rw")[0].point == plain


@pytest.mark.parametrize(
    ("path", "folder", "inside"),
    [
        ("/a", "/a", True),
        ("/a/b", "/a", True),
        ("/ab", "/a", False),
        ("/", "/a", False),
        ("/a", "/", True),
        ("/", "/", True),
    ],
)
def test_within(path: str, folder: str, inside: bool) -> None:
    """A folder holds itself and what is below it, at a border of names only."""
    assert is_within(path, folder) is inside


@pytest.mark.parametrize(
    ("path", "others"),
    [
        ("/home/ann/.config/tidegate", ("/mnt/ann/.config/tidegate", "/mnt/config")),
        ("/home/ann/.config", ("/mnt/ann/.config", "/mnt/config")),
        ("/home/ann", ("/mnt/ann", "/mnt/config")),
        ("/home/bob/x", ("/mnt/bob/x",)),
        ("/home/annette", ()),
        ("/srv/data", ("/mnt/with space",)),
        ("/srv", ("/mnt/with space",)),
        ("/srv/database", ()),
        ("/mnt/config", ("/home/ann/.config/tidegate", "/mnt/ann/.config/tidegate")),
    ],
)
def test_other_names_of_a_path(path: str, others: tuple[str, ...]) -> None:
    """Every bind that shows the path, or part of it, is found; neighbours are not (HLD-15)."""
    assert aliases(path, MOUNTS) == others


def test_a_folder_of_a_device_is_found_where_it_is_shown() -> None:
    """Whole or in part, of that device alone; what lies beside it is not (HLD-15)."""
    assert list(places_of("254:1", "/ann", MOUNTS)) == ["/home/ann", "/mnt/ann", "/mnt/config"]
    assert list(places_of("254:1", "/ann/x", MOUNTS)) == ["/home/ann/x", "/mnt/ann/x"]
    assert list(places_of("254:9", "/ann", MOUNTS)) == []


@pytest.mark.parametrize(
    ("options", "firm"),
    [
        ("ro,relatime", True),
        ("rw,relatime", False),
        ("rw,errors=remount-ro", False),
        ("ro,nosuid unbindable", True),
        ("ro shared:4", False),
        ("ro,relatime master:7", False),
    ],
)
def test_what_stays_as_it_is_is_told_from_what_can_be_written(options: str, *, firm: bool) -> None:
    """By the mount's own options; where others are mounted below it later, they can be written (HLD-15)."""
    assert parse_mounts(f"22 1 254:0 / / {options} - ext4 /dev/vda rw\n")[0].firm is firm


def test_the_latest_of_the_deepest_mounts_counts() -> None:
    """What lies on top is what a path leads to."""
    mounts = parse_mounts(TABLE + "29 25 0:50 / /home rw - tmpfs x rw\n")
    assert mount_of("/home/ann", mounts) == Mount("0:50", "/", "/home", "tmpfs")
    assert mount_of("/homer", mounts) == MOUNTS[0]
    assert mount_of("/x", ()) is None
    assert aliases("/x", ()) == ()


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1))
def test_any_name_can_be_escaped_and_read(name: str) -> None:
    """Whatever a folder is called, the kernel's escapes of it are read back."""
    raw = b""
    for byte in name.encode():
        raw += b"\\%03o" % byte if byte in b" \t\n\\" or not 32 <= byte <= 126 else bytes([byte])
    assert parse_mounts(f"1 1 0:1 / /{raw.decode('ascii')} rw - tmpfs x rw")[0].point == "/" + name


def test_this_machines_table_can_be_read() -> None:
    """The real table has a root and a /proc."""
    assert {"/", "/proc"} <= {mount.point for mount in read_mounts()}


@pytest.mark.parametrize("name", ["a\x0cb", "a\x85b", "a\u2028b", "a\rb"])
def test_only_a_newline_ends_a_line(name: str) -> None:
    """The kernel escapes no other line end that a name may have; a label of a disk can have one."""
    found = parse_mounts(f"22 1 254:0 / / rw - ext4 /dev/vda rw\n23 22 8:1 / /media/{name} rw - vfat /dev/sda rw\n")
    assert [one.point for one in found] == ["/", f"/media/{name}"]
    assert parse_mounts("") == ()
