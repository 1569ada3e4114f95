"""Id-mapped views: the task's own inside, the owner's on the disk."""

from __future__ import annotations

from tests.unit.holds.apart import apart
from tests.unit.holds.uid_apart import NEEDS_ROOT

pytestmark = NEEDS_ROOT


def test_files_are_the_users_inside_and_the_owners_on_the_disk() -> None:
    """What is there and what is made; somebody else's file is nobody's and cannot be written (HLD-3)."""
    code = """
    import tempfile
    from tidegate.holds import idmap
    folder = tempfile.mkdtemp(dir='/var/tmp')
    os.chown(folder, 12345, 12346)
    for name, owner in (('theirs', 12345), ('others', 12399)):
        open(f'{folder}/{name}', 'w').close()
        os.chown(f'{folder}/{name}', owner, owner)
    outside = os.open(folder, os.O_PATH)
    linux.unshare(linux.CLONE_NEWNS)
    mounts.set_attributes('/', 0, recursive=True, propagation=linux.MS_PRIVATE)
    idmap.show(idmap.Mapped(folder, idmap.make_map((12345, 12346), (30001, 30001))))
    def owner(path):
        return os.stat(path).st_uid, os.stat(path).st_gid
    print(owner(folder), os.stat(f'{folder}/theirs').st_uid, os.stat(f'{folder}/others').st_uid)
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setresgid(30001, 30001, 30001)
        os.setresuid(30001, 30001, 30001)
        open(f'{folder}/made', 'w').close()
        os._exit(attempt(os.truncate, f'{folder}/others', 1) == 'EACCES')
    print(os.waitpid(child, 0)[1] >> 8, owner(f'{folder}/made'), owner(f'/proc/self/fd/{outside}/made'))
    for name in ('made', 'theirs', 'others'):
        os.unlink(f'/proc/self/fd/{outside}/{name}')
    linux.call('umount2', linux.path(folder), 2)
    os.rmdir(folder)
    """
    first, second = apart(code).splitlines()
    assert first == "(30001, 30001) 30001 65534"
    assert second == "1 (30001, 30001) (12345, 12346)"


def test_a_file_system_that_cannot_is_named_with_what_to_do() -> None:
    """The file system sysfs has no such views; HLD-7: a line with the fix."""
    code = """
    from tidegate.holds import idmap
    from tidegate.model.errors import StartError
    linux.unshare(linux.CLONE_NEWNS)
    mounts.set_attributes('/', 0, recursive=True, propagation=linux.MS_PRIVATE)
    try:
        idmap.show(idmap.Mapped('/sys/kernel', idmap.make_map((0, 0), (30001, 30001))))
    except StartError as error:
        print(error.code, error.exit_status)
    """
    assert apart(code) == "hold-idmap 78\n"
