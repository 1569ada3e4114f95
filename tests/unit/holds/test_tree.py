"""The task's tree, built as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.holds.apart import apart

if TYPE_CHECKING:
    from pathlib import Path

BUILD = """
    from tidegate.holds.hold import LaunchSpec, Share
    from tidegate.holds.plan import make_plan
    from tidegate.holds.tree import build
    base = os.path.realpath(sys.argv[1])
    def view(**wishes):
        fields = {'argv': (), 'env': {'HOME': '/'}, 'cwd': '/'} | wishes
        plan = make_plan(LaunchSpec(**fields), os.getuid())
        inside(linux.CLONE_NEWNS | linux.CLONE_NEWPID, attributes=0)
        if (child := os.fork()):
            sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        build(plan)
"""


def test_protection_holds_inside_what_is_bound(tmp_path: Path) -> None:
    """Hidden, read-only and covered things stay so in a workspace that is bound back, and its rest is open (HLD-15)."""
    code = (
        BUILD
        + """
    import _socket
    for name in ('work/state', 'work/src', 'work/open'):
        os.makedirs(f'{base}/{name}')
    open(base + '/work/state/secret', 'w').close()
    wire = _socket.socket(1)
    wire.bind(base + '/work/s')
    wire.listen()
    view(workspace=base + '/work', hidden=(base + '/work/state',), readonly=(base + '/work/src',))
    print(os.listdir(base + '/work/state'), attempt(open, base + '/work/state/x', 'w'))
    print(attempt(open, base + '/work/src/x', 'w'), attempt(open, base + '/work/open/x', 'w'))
    print(attempt(_socket.socket(1).connect, base + '/work/s'))
    print(attempt(os.rename, base + '/work/src', base + '/work/src2'), attempt(os.rmdir, base + '/work/state'))
    """
    )
    assert apart(code, str(tmp_path)) == "[] EROFS\nEROFS done\nECONNREFUSED\nEBUSY EBUSY\n"


def test_read_only_things_in_a_hidden_folder_are_hidden(tmp_path: Path) -> None:
    """An environment that lies in the hidden cache is not seen, and nothing stops the start (HLD-15)."""
    code = (
        BUILD
        + """
    os.makedirs(base + '/cache/env/bin')
    view(hidden=(base + '/cache', base + '/cache/state'), readonly=(base + '/cache/env',), workspace=base)
    print(os.listdir(base + '/cache'), attempt(os.rename, base + '/cache', base + '/c'))
    """
    )
    assert apart(code, str(tmp_path)) == "[] EBUSY\n"


def test_shares_inside_one_another(tmp_path: Path) -> None:
    """A read-only share in a writable one is read-only, whatever the order they are named in (HLD-14)."""
    code = (
        BUILD
        + """
    os.makedirs(base + '/a/b/c')
    view(shares=(Share(base + '/a/b', True), Share(base + '/a'), Share(base + '/a/b/c')))
    print(*[attempt(open, f'{base}/{name}/x', 'w') for name in ('a', 'a/b', 'a/b/c')])
    """
    )
    assert apart(code, str(tmp_path)) in ("done EROFS done\n", "done EROFS EROFS\n")


def test_no_device_and_no_set_user_id_outside_dev(tmp_path: Path) -> None:
    """Every mount but those of the task's /dev is nodev and nosuid (HLD-13)."""
    code = (
        BUILD
        + """
    from tidegate.holds.mountinfo import read_mounts
    view()
    points = {mount.point for mount in read_mounts() if not mount.point.startswith('/dev/')}
    print([point for point in points if os.access(point, os.X_OK)
           and os.statvfs(point).f_flag & (os.ST_NODEV | os.ST_NOSUID) != os.ST_NODEV | os.ST_NOSUID])
    print(oct(os.umask(0)))
    """
    )
    lines = apart(code, str(tmp_path)).splitlines()
    assert lines[0] == "[]"
    assert lines[1].startswith("0o")


def test_own_folders_have_their_modes(tmp_path: Path) -> None:
    """/tmp is for everybody, /run/user/UID for one, what is between is not open for writing (HLD-14)."""
    code = (
        BUILD
        + """
    view(env={'HOME': '/', 'TMPDIR': '/tmp/a/b'})
    own = f'/run/user/{os.getuid()}'
    for path in ('/tmp', '/run', '/run/lock', '/run/user', own, '/tmp/a', '/tmp/a/b', '/dev/shm'):
        print(oct(os.stat(path).st_mode & 0o7777), end=' ')
    print(os.stat('/tmp').st_uid == os.getuid())
    """
    )
    assert apart(code, str(tmp_path)) == "0o1777 0o755 0o1777 0o755 0o700 0o755 0o700 0o1777 True\n"


def test_nothing_reaches_the_machine(tmp_path: Path) -> None:
    """The machine's mounts are what they were: propagation ends at the first line (HLD-1)."""
    code = """
    def table():
        with open('/proc/self/mountinfo') as file:
            return file.read()
    before = table()
    if os.fork() == 0:
        exec(sys.argv[2].replace('    ', '', 1).replace('\\n    ', '\\n'))
        view()
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.wait()[1]), table() == before)
    """
    assert apart(code, str(tmp_path), BUILD.strip("\n")) == "0 True\n"
