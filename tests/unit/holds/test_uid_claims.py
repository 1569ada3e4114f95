"""Claims on users of the hold `uid`: one holder, given back however it ends, swept after a crash."""

from __future__ import annotations

from tests.unit.holds.uid_apart import NEEDS_ROOT, fenced

pytestmark = NEEDS_ROOT


def test_a_uid_has_one_holder_until_it_is_released() -> None:
    """Another process gets none while it is held, and the same one afterwards; the table is as before (HLD-3)."""
    code = """
    before = uid_fence.living()
    mine = uid_claims.claim(30500)
    mine.enter(elements(30500, Ports(9, 8, 7)))
    uid_fence.change('add', [('own', '30500 . 8080')])
    print(uid_claims.claim(30500), uid_fence.living()['gates'])
    mine.release()
    mine.release()
    print(uid_fence.living() == before, uid_claims.claim(30500) is not None)
    """
    assert fenced(code).splitlines() == [
        "None [{'concat': [30500, 7]}, {'concat': [30500, 8]}, {'concat': [30500, 9]}]", "True True",
    ]  # fmt: skip


def test_what_a_killed_holder_left_is_swept_and_the_living_keep_theirs() -> None:
    """HLD-8: the elements of a dead run go at the next sweep, or when its uid is claimed; a living one's stay."""
    code = """
    def die_holding(uid):
        child = os.fork()
        if child == 0:
            uid_claims.claim(uid).enter(elements(uid, Ports(uid)))
            os.kill(os.getpid(), 9)
        os.waitpid(child, 0)
    alive = uid_claims.claim(30001)
    alive.enter(elements(30001, Ports(30001)))
    for uid in (30002, 30003):
        die_holding(uid)
    print(sorted(one['concat'][0] for one in uid_fence.living()['gates']))
    again = uid_claims.claim(30003)
    print(sorted(one['concat'][0] for one in uid_fence.living()['gates']))
    print(uid_claims.sweep(), sorted(one['concat'][0] for one in uid_fence.living()['gates']))
    """
    assert fenced(code).splitlines() == ["[30001, 30002, 30003]", "[30001, 30002]", "[30002] [30001]"]


def test_a_uid_with_a_process_or_a_file_left_is_given_to_nobody() -> None:
    """HLD-3: not before its processes and files are gone."""
    code = """
    import time
    child = os.fork()
    if child == 0:
        os.setresuid(30600, 30600, 30600)
        time.sleep(60)
        os._exit(0)
    while os.stat('/proc/%d' % child).st_uid != 30600 and 'Uid:\\t30600' not in open('/proc/%d/status' % child).read():
        time.sleep(0.01)
    print(uid_claims.claim(30600))
    os.kill(child, 9)
    os.waitpid(child, 0)
    descriptor, path = tempfile.mkstemp(dir='/var/tmp')
    os.chown(path, 30600, 30600)
    print(uid_claims.claim(30600))
    os.unlink(path)
    print(uid_claims.claim(30600) is not None)
    """
    assert fenced(code).splitlines() == ["None", "None", "True"]


def test_a_folder_that_is_not_roots_alone_is_refused() -> None:
    """Somebody else could hold every uid, or write what is swept: HLD-7."""
    code = """
    from tidegate.model.errors import StartError
    os.makedirs(uid_claims.FOLDER, 0o755)
    try:
        uid_claims.claim(30001)
    except StartError as error:
        print(error.code)
    """
    assert fenced(code) == "uid-claims\n"


def test_what_a_killed_holder_left_unnoted_is_no_hindrance() -> None:
    """HLD-8: the folder was removed, or another network's run has emptied the note: its user's place is made anew.

    A port that is guarded already, which somebody else had, is no reason to fail.
    """
    code = """
    import shutil
    services = {('127.0.0.1', 5432): 4004, ('::1', 5432): 4005}
    for uid in (30001, 30002):
        uid_claims.claim(uid).enter(elements(uid, Ports(uid, 8, 7, services if uid == 30001 else None)))
    uid_fence.change('add', [('own', '30001 . 8080')])
    shutil.rmtree(uid_claims.FOLDER)
    again = uid_claims.claim(30001)
    again.enter(elements(30001, Ports(30002)))
    print(uid_fence.places_of(30001), len(uid_fence.places_of(30002)))
    """
    places = [
        ("proxy", "30001 : 30002"), ("marks", "30001 : 1966145536"), ("same", "1966145536 . 1966145536"),
        ("gates", "30001 . 30002"),
    ]  # fmt: skip
    assert fenced(code) == f"{places} 8\n"


def test_a_folder_that_cannot_be_made_is_said_with_what_to_do() -> None:
    """Root is not told to be root (HLD-7)."""
    code = """
    from tidegate.model.errors import StartError
    mounts.set_attributes('/run', mounts.READ_ONLY)
    try:
        uid_claims.claim(30001)
    except StartError as error:
        print(error)
    """
    said = fenced(code)
    assert "Read-only file system" in said
    assert "/run must be there and writable" in said
