"""The task's /dev."""

from __future__ import annotations

from tests.unit.holds.apart import apart


def test_it_has_what_programs_need_and_nothing_else() -> None:
    """The nodes work, ptys are its own, shared memory can be written, and /dev itself cannot (HLD-13)."""
    code = """
    from tidegate.holds import device
    inside(attributes=0)
    taken = device.take_nodes()
    mounts.set_attributes('/', mounts.SAFE, recursive=True)
    device.make_dev(taken)
    device.finish_dev()
    print(*sorted(os.listdir('/dev')))
    open('/dev/null', 'w').write('x')
    print(open('/dev/zero', 'rb').read(2), len(open('/dev/urandom', 'rb').read(3)))
    master, slave = os.openpty()
    print(os.ttyname(slave), os.listdir('/dev/pts') != [], os.readlink('/dev/fd'))
    print(attempt(open, '/dev/shm/x', 'w'), attempt(open, '/dev/x', 'w'), attempt(os.mknod, '/dev/shm/n', 0o60600, 1))
    print(oct(os.stat('/dev/shm').st_mode & 0o7777))
    """
    lines = apart(code).splitlines()
    assert lines[0] == "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero"
    assert lines[1] == "b'\\x00\\x00' 3"
    assert lines[2] == "/dev/pts/0 True /proc/self/fd"
    assert lines[3] == "done EROFS EPERM"
    assert lines[4] == "0o1777"


def test_more_devices_come_by_name_and_a_missing_one_is_left_out() -> None:
    """A shared device is placed with the folders above it; without /dev/null nothing is built (HLD-7)."""
    code = """
    from tidegate.holds import device
    inside()
    taken = device.take_nodes(('shm', 'no-such-device', 'null'))
    print([name for name, tree in taken])
    """
    assert "'shm', 'null']" in apart(code)


def test_placing_makes_what_it_is_put_on() -> None:
    """Files are put on files and folders on folders, made where they are missing."""
    code = """
    from tidegate.holds import device
    inside()
    tree, file = mounts.clone('/etc'), mounts.clone('/etc/passwd')
    mounts.attach(mounts.new_file_system('tmpfs', (), mounts.SAFE), '/mnt')
    device.place(tree, '/mnt/a/b/etc')
    device.place(file, '/mnt/a/passwd')
    print(os.path.samefile('/mnt/a/b/etc/passwd', '/mnt/a/passwd'))
    """
    assert apart(code) == "True\n"
