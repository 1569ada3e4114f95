"""The table of the hold `uid` while a server runs: loaded, put back, said when it cannot be."""

from __future__ import annotations

from tests.unit.holds.uid_apart import NEEDS_ROOT, fenced

pytestmark = NEEDS_ROOT

CODE = """
import asyncio
from tidegate.server.user_table import UserTable
told = []
async def main(act):
    table = UserTable('/run/state', asyncio.get_running_loop(), lambda: 1.0,
                      lambda kind, **more: told.append((kind, more.get('reason', '')[:30])))
    await table.open()
    await act()
    table.close()
"""


def test_it_is_loaded_at_the_start_and_put_back() -> None:
    """Before any task can be; after `flush ruleset` it is there again within seconds, and the log says so (HLD-7)."""
    code = (
        CODE
        + """
whole = uid_fence.rules()
uid_fence.run(('delete', 'table', 'inet', 'tidegate'))
async def act():
    print(uid_fence.rules() == whole)
    for what in ('flush ruleset', 'flush chain inet tidegate task'):
        uid_fence.run(('-f', '-'), what + '\\n')
        for _ in range(1000):
            await asyncio.sleep(0.1)
            if uid_fence.rules() == whole and len(asyncio.all_tasks()) == 1:  # nobody is putting it back any more
                break
        print(uid_fence.rules() == whole)
asyncio.run(main(act))
print(told)
"""
    )
    assert fenced(code) == "True\nTrue\nTrue\n[('hold.table-lost', ''), ('hold.table-lost', '')]\n"


def test_what_a_killed_run_left_is_removed_and_a_living_ones_kept() -> None:
    """HLD-8, at the start of a server."""
    code = (
        CODE
        + """
alive = uid_claims.claim(30001)
alive.enter(elements(30001, Ports(9)))
child = os.fork()
if child == 0:
    uid_claims.claim(30002).enter(elements(30002, Ports(8)))
    os.kill(os.getpid(), 9)
os.waitpid(child, 0)
async def act():
    print([one['concat'][0] for one in uid_fence.living()['gates']])
asyncio.run(main(act))
print(told)
"""
    )
    assert fenced(code) == "[30001]\n[]\n"


def test_without_nft_the_log_says_why_there_is_no_such_hold() -> None:
    """HLD-7: the server serves other holds."""
    code = (
        CODE
        + """
uid_fence.PLACES = ()
async def act():
    pass
asyncio.run(main(act))
print(told[0][0])
"""
    )
    assert fenced(code) == "hold.unavailable\n"
