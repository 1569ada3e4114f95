"""/proc and /sys of a task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.holds.apart import apart

if TYPE_CHECKING:
    from pathlib import Path

BUILD = """
    from tidegate.holds import kernel_files, mountinfo
    from tidegate.holds.masks import Masks
    inside(linux.CLONE_NEWNS | linux.CLONE_NEWPID)
    if (child := os.fork()):
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    masks = Masks()
"""


def test_proc_is_fresh_and_its_doors_are_closed() -> None:
    """Only this namespace's processes; nothing at the top can be written, and processes can (HLD-13)."""
    code = (
        BUILD
        + """
    kernel_files.make_proc(masks)
    print([name for name in os.listdir('/proc') if name.isdigit()])
    print(attempt(open, '/proc/sys/kernel/core_pattern', 'w'), attempt(open, '/proc/self/oom_score_adj', 'w'))
    left = []
    for folder in [name for name in os.listdir('/proc') if not name.isdigit() and name not in ('self', 'thread-self')]:
        path = '/proc/' + folder
        if os.path.islink(path) or not os.stat(path).st_mode & 0o222 and not os.path.isdir(path):
            continue
        if not os.statvfs(path).f_flag & os.ST_RDONLY and folder not in kernel_files.PROC_MASKED:
            left.append(folder)
    print(left, [os.listdir('/proc/' + name) for name in ('acpi', 'scsi') if os.path.isdir('/proc/' + name)])
    """
    )
    lines = apart(code).splitlines()
    assert lines[0] == "['1']"
    assert lines[1] in ("EROFS done", "EACCES done")
    assert lines[2].startswith("[] ")
    assert set(lines[2]) <= set("[], ")


def test_sys_is_read_only_and_its_secrets_are_masked() -> None:
    """Nothing below /sys can be written, control groups neither; firmware and debug folders are empty (HLD-13)."""
    code = (
        BUILD
        + """
    kernel_files.close_sys(masks)
    print(os.statvfs('/sys').f_flag & os.ST_RDONLY != 0)
    print([mount.point for mount in mountinfo.read_mounts() if mount.point.startswith('/sys/')
           and not os.statvfs(mount.point).f_flag & os.ST_RDONLY and os.access(mount.point, os.X_OK)])
    print([path for path in kernel_files.SYS_MASKED if os.path.isdir(path) and os.listdir(path)])
    """
    )
    assert apart(code) == "True\n[]\n[]\n"


def test_doors_elsewhere_are_found(tmp_path: Path) -> None:
    """A second sysfs is read-only and a second /proc empty; a plain file system is left alone (HLD-13)."""
    code = (
        BUILD
        + """
    base = os.path.realpath(sys.argv[1])
    for name in ('proc', 'sys', 'memory'):
        os.mkdir(f'{base}/{name}')
    mounts.attach(mounts.new_file_system('proc'), base + '/proc')
    mounts.attach(mounts.clone('/sys'), base + '/sys')
    mounts.attach(mounts.new_file_system('tmpfs', (), mounts.SAFE), base + '/memory')
    table = [mount for mount in mountinfo.read_mounts() if mount.point.startswith(base)]
    kernel_files.close_elsewhere((*table, mountinfo.Mount('0:1', '/', base + '/gone', 'proc')), masks)
    print(os.listdir(base + '/proc'), os.statvfs(base + '/sys').f_flag & os.ST_RDONLY != 0)
    print(attempt(open, base + '/memory/file', 'w'))
    """
    )
    assert apart(code, str(tmp_path)) == "[] True\ndone\n"
