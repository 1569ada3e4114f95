"""Changes of the table are seen at once; changes by elements of others, and of other tables, are none."""

from __future__ import annotations

import pytest

from tests.unit.holds.uid_apart import NEEDS_ROOT, fenced

pytestmark = NEEDS_ROOT

WATCH = """
watch = uid_watch.TableWatch()
uid_fence.change('create', elements(30001, Ports(9)))
watch.know(uid_watch.look())
watch.expect(30001)
"""


@pytest.mark.parametrize(
    "act",
    [
        "delete table inet tidegate", "flush ruleset", "flush chain inet tidegate task",
        "flush set inet tidegate gates",
        "delete element inet tidegate proxy { 30001 }", "add rule inet tidegate task accept",
        "insert rule inet tidegate fence accept", "add chain inet tidegate more",
        "add table inet tidegate { flags dormant; }",
    ],
)  # fmt: skip
def test_what_somebody_does_to_it_is_seen(act: str) -> None:
    """HLD-7: removed, emptied, weakened, put to sleep, or a user's place in it taken away."""
    code = WATCH + "uid_fence.run(('-f', '-'), sys.argv[1] + '\\n')\nprint(watch.altered())\n"
    assert fenced(code, act) == "True\n"


def test_what_tasks_come_and_go_by_is_no_change() -> None:
    """Elements of others and own ports, however many; another table; refusals that are counted (HLD-3)."""
    code = (
        WATCH
        + """
for uid in range(30002, 30102):
    uid_fence.change('create', elements(uid, Ports(uid)))
    uid_fence.change('delete', elements(uid, Ports(uid)))
wire = uid_watch.netlink.connect(12)
uid_watch.add_own(wire, 30001, 8080)
uid_fence.change('delete', [('own', '30001 . 8080')])
uid_fence.run(('-f', '-'), 'add table inet other\\nadd chain inet other a\\n')
uid_fence.run(('delete', 'table', 'inet', 'other'))
print(as_user(30001, connect, '127.0.0.1', 99), watch.altered())
uid_fence.run(('delete', 'table', 'inet', 'tidegate'))
print(watch.altered())
"""
    )
    assert fenced(code) == "ECONNREFUSED False\nTrue\n"


def test_an_own_port_is_entered_as_nft_enters_it() -> None:
    """What is added by netlink is the element that nft lists (HLD-3)."""
    code = """
    wire = uid_watch.netlink.connect(12)
    uid_watch.add_own(wire, 30001, 8080)
    uid_watch.add_own(wire, 30001, 8080)
    print(uid_fence.own_ports(30001), uid_fence.own_ports(30002))
    for port in range(9000, 10024):
        uid_watch.add_own(wire, 30001, port)
    uid_watch.forget_own(wire, 30001, range(9000, 10024))
    print(uid_fence.own_ports(30001))
    """
    assert fenced(code) == "[8080] []\n[8080]\n"


def test_what_is_done_between_loading_and_looking_is_seen() -> None:
    """HLD-7: a table that is weakened right after it was found whole is never taken for what it must be."""
    code = """
    from tidegate.holds import uid
    ensure, left = uid_fence.ensure, [1]
    def weakened():
        done = ensure()
        if not done and left:
            left.clear()
            uid_fence.run(('flush', 'chain', 'inet', 'tidegate', 'task'))
        return done
    uid_fence.ensure = weakened
    watch = uid_watch.TableWatch()
    uid.prepare(watch)
    print(watch.altered())
    uid.prepare(watch)
    print(watch.altered())
    """
    assert fenced(code) == "True\nFalse\n"
