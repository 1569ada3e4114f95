"""tidegate.holds.uid_pause: a user of the range, its gate that does not answer, and a neighbour's that does."""

from __future__ import annotations

from tests.unit.holds.uid_apart import NEEDS_ROOT, fenced

pytestmark = NEEDS_ROOT

# Two users with a gate each, behind the real table; what each reaches by the address that all have.
TWO = """
import select
from tidegate.holds.uid_pause import UidPause
uid_routes.keep_at_home()
gates, ports = {}, {}
for uid in (30001, 30002):
    gates[uid] = server()
    ports[uid] = Ports(gates[uid][1], met={('127.0.0.1', 5432): gates[uid][1]})
    uid_claims.claim(uid).enter(elements(uid, ports[uid]))
def reach(uid):
    return as_user(uid, connect, '127.0.0.1', 3128), as_user(uid, connect, '127.0.0.1', 5432)
def waiting(uid):
    # One of the user's that is connected and reads: a pipe that has a byte once it is over.
    reading, writing = os.pipe()
    up = os.pipe()
    if os.fork() == 0:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        wire = socket.create_connection(('127.0.0.1', 3128))
        os.write(up[1], b'.')
        try:
            wire.recv(1)
        except OSError as error:
            os.write(writing, errno.errorcode[error.errno].encode())
        os._exit(0)
    os.read(up[0], 1)
    os.close(writing)
    return reading
def tables():
    from subprocess import run
    return [line for line in run(['nft', 'list', 'tables'], capture_output=True, text=True).stdout.split('\\n') if line]
"""


def test_only_this_users_way_is_shut_and_it_comes_back() -> None:
    """HLD-7: the proxy and what stands for a service, new and open; the neighbour of the range goes on."""
    code = (
        TWO
        + """
print(reach(30001), reach(30002))
open_now = {uid: waiting(uid) for uid in gates}
pause = UidPause(30001, ports[30001])
print(pause.shut(shut=True), pause.shut(shut=True))
print(os.read(open_now[30001], 100), select.select([open_now[30002]], [], [], 0.2)[0])
print(reach(30001), reach(30002))
print(tables())
print(pause.shut(shut=False), pause.shut(shut=False), reach(30001), tables())
"""
    )
    good = "('127.0.0.1 3128', '127.0.0.1 5432')"
    lines = [
        f"{good} {good}",
        "True True",
        "b'ECONNABORTED' []",
        f"('ECONNREFUSED', 'ECONNREFUSED') {good}",
        "['table inet tidegate', 'table inet tidegate-pause-30001']",
        f"True True {good} ['table inet tidegate']",
    ]
    assert fenced(code).splitlines() == lines


def test_the_table_goes_with_whoever_made_it() -> None:
    """HLD-8: a front that is killed leaves nothing, and nobody's `nft flush ruleset` opens the way meanwhile."""
    code = (
        TWO
        + """
from subprocess import run
ready, go = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    kept = UidPause(30001, ports[30001])
    kept.shut(shut=True)
    os.write(ready[1], b'.')
    os.read(go[0], 1)
    os._exit(0)
os.read(ready[0], 1)
run(['nft', 'delete', 'table', 'inet', 'tidegate-pause-30001'], capture_output=True)
print(tables(), reach(30001)[0])
os.kill(child, 9)
os.waitpid(child, 0)
print(tables(), reach(30001)[0])
"""
    )
    assert fenced(code).splitlines() == [
        "['table inet tidegate', 'table inet tidegate-pause-30001'] ECONNREFUSED",
        "['table inet tidegate'] 127.0.0.1 3128",
    ]
