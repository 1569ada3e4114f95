"""Mount primitives, in a namespace of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.holds.apart import apart

if TYPE_CHECKING:
    from pathlib import Path


def test_trees_are_cloned_changed_and_attached(tmp_path: Path) -> None:
    """A read-only bind refuses writing and leaves its source alone; masks come along in a recursive clone (HLD-15)."""
    code = """
    base = sys.argv[1]
    for name in ('a/deep', 'b', 'c'):
        os.makedirs(f'{base}/{name}')
    inside()
    mounts.attach(mounts.new_file_system('tmpfs'), base + '/a/deep')
    open(base + '/a/deep/in-memory', 'w').close()
    mounts.attach(mounts.clone(base + '/a'), base + '/b')
    print(os.listdir(base + '/b/deep'))
    mounts.bind_read_only(base + '/b')
    print(attempt(open, base + '/b/x', 'w'), attempt(open, base + '/b/deep/x', 'w'), attempt(open, base + '/a/x', 'w'))
    mounts.attach(mounts.clone(base + '/a', recursive=False), base + '/c')
    print(os.listdir(base + '/c/deep'))
    """
    assert apart(code, str(tmp_path)) == "['in-memory']\nEROFS EROFS done\n[]\n"


def test_a_symlink_itself_can_carry_a_mount(tmp_path: Path) -> None:
    """Attaching does not follow a last symlink; cloning follows it unless told not to."""
    code = """
    base = sys.argv[1]
    os.mkdir(base + '/real')
    open(base + '/real/file', 'w').close()
    os.symlink('real', base + '/link')
    inside()
    mounts.attach(mounts.clone('/dev/null'), base + '/link')
    print(attempt(os.unlink, base + '/link'), attempt(os.rename, base + '/real', base + '/other'))
    """
    assert apart(code, str(tmp_path)) == "EBUSY done\n"


def test_new_file_systems_have_their_options(tmp_path: Path) -> None:
    """Mode and attributes are as asked; a kind that cannot be mounted is named in the error."""
    code = """
    base = sys.argv[1]
    inside()
    mounts.attach(mounts.new_file_system('tmpfs', (('mode', '711'),), mounts.INERT | mounts.READ_ONLY), base)
    print(oct(os.stat(base).st_mode & 0o777), attempt(open, base + '/x', 'w'))
    try:
        mounts.new_file_system('proc')
    except OSError as error:
        print(errno.errorcode[error.errno], error.filename)
    """
    assert apart(code, str(tmp_path)) == "0o711 EROFS\nEPERM proc\n"


def test_descriptors_are_closed(tmp_path: Path) -> None:
    """Neither success nor failure leaves a descriptor open."""
    code = """
    base = sys.argv[1]
    inside()
    before = len(os.listdir('/proc/self/fd'))
    mounts.attach(mounts.new_file_system('tmpfs'), base)
    attempt(mounts.attach, mounts.clone(base), base + '/missing')
    attempt(mounts.new_file_system, 'tmpfs', (('no-such-option', 'x'),))
    mounts.bind_read_only(base)
    print(len(os.listdir('/proc/self/fd')) - before)
    """
    assert apart(code, str(tmp_path)) == "0\n"


def test_a_symlink_that_came_between_is_not_cloned(tmp_path: Path) -> None:
    """HLD-14: another task could swap a folder on the way for a link into /run between the look and the bind."""
    code = """
    base = sys.argv[1]
    os.makedirs(base + '/real/deep')
    os.symlink('real', base + '/link')
    inside()
    os.close(mounts.clone_real(base + '/real/deep'))
    print(attempt(mounts.clone_real, base + '/link'), attempt(mounts.clone_real, base + '/link/deep'))
    print(attempt(mounts.clone_real, base + '/missing'), attempt(mounts.clone_real, '/'))
    mounts._HOW = mounts._HOW[:8]  # no openat2 of this size: EINVAL, as no kernel says of ours
    print(attempt(mounts.open_real, base + '/real'))
    mounts.linux.NUMBERS = {**mounts.linux.NUMBERS}
    del mounts.linux.NUMBERS['openat2']  # a kernel or a filter without it
    print(attempt(mounts.clone_real, base + '/link'), attempt(mounts.clone_real, base + '/link/deep'))
    print(attempt(mounts.clone_real, base + '/missing'), attempt(mounts.clone_real, '/'))
    """
    same = "ELOOP ENOTDIR\nENOENT done\n"
    assert apart(code, str(tmp_path)) == f"{same}EINVAL\n{same}"
