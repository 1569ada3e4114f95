"""Doctor's rows about the hold `uid`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests.unit.holds.uid_apart import NEEDS_ROOT, fenced
from tidegate.doctor.users import check_users

if TYPE_CHECKING:
    import pytest

CODE = """
from tidegate.doctor.users import check_users
def rows():
    return {check.name: check for check in check_users()}
def states():
    return ' '.join(f'{name}:{check.state}' for name, check in rows().items())
"""


@NEEDS_ROOT
def test_all_is_well_before_and_after_the_table_is_there() -> None:
    """A table that is not loaded is no fault: it is when a server or a task starts (SRV-5)."""
    code = (
        CODE
        + """
print(states())
uid_fence.run(('delete', 'table', 'inet', 'tidegate'))
print(states(), uid_fence.rules())
"""
    )
    assert fenced(code) == "hold uid:ok uid table:ok uid users:ok\nhold uid:ok uid users:ok None\n"


@NEEDS_ROOT
def test_a_table_that_was_changed_is_loaded_again_by_fix() -> None:
    """SRV-5: with nobody in it; while tasks live by it they are to be ended first."""
    code = (
        CODE
        + """
uid_fence.run(('flush', 'chain', 'inet', 'tidegate', 'task'))
mine = uid_claims.claim(30001)
mine.enter(elements(30001, Ports(9)))
print(states(), rows()['uid table'].mend)
mine.release()
rows()['uid table'].mend()
print(states())
"""
    )
    assert fenced(code) == "hold uid:ok uid table:fail uid users:ok None\nhold uid:ok uid table:ok uid users:ok\n"


@NEEDS_ROOT
def test_what_killed_runs_left_is_named_and_removed() -> None:
    """HLD-8, SRV-5: a place in the table by --fix; a file is somebody's to remove."""
    code = (
        CODE
        + """
child = os.fork()
if child == 0:
    uid_claims.claim(30002).enter(elements(30002, Ports(8)))
    os.kill(os.getpid(), 9)
os.waitpid(child, 0)
print(rows()['uid users'].what)
rows()['uid users'].mend()
print(states())
descriptor, path = tempfile.mkstemp(dir='/var/tmp')
os.chown(path, 30777, 30777)  # nobody else's: other tests look into that folder, too
os.close(uid_claims._open('30777'))
print(path in rows()['uid users'].what)
os.unlink(path)
"""
    )
    expected = "runs that were killed left places in the table: 30002\nhold uid:ok uid table:ok uid users:ok\nTrue\n"
    assert fenced(code) == expected


@NEEDS_ROOT
def test_what_is_missing_is_a_warning_with_what_to_do() -> None:
    """No nft: another hold can be had (SRV-5, HLD-7)."""
    code = (
        CODE
        + """
uid_fence.PLACES = ()
uid_fence._reference.clear()
print(states(), rows()['hold uid'].fix)
"""
    )
    assert fenced(code).startswith("hold uid:warn apt-get install nftables")


def test_it_is_no_ordinary_users_affair(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is said to who could not have it anyway."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert check_users() == []
