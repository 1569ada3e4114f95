"""The hold `uid` with many tasks, under kill -9, and with one that takes more than its share."""

from __future__ import annotations

import pytest

from tests.unit.holds.uid_apart import NEEDS_ROOT, fenced

pytestmark = NEEDS_ROOT

LAUNCH = """
import json, select, signal, socket, subprocess, time
from tidegate.holds import control
from tidegate.holds.hold import LaunchSpec
from tidegate.holds.uid import UID
uid_routes.keep_at_home()
work = tempfile.mkdtemp(prefix='tidegate-uid-', dir='/var/tmp')
def launch(argv, deliver, **more):
    spec = LaunchSpec(argv=argv, env={'PATH': '/usr/bin:/bin', 'HOME': '/root'}, cwd=work, workspace=work,
                      selftest=False, **more)
    return UID.launch(spec, deliver)
mine = 30000 + os.getpid() % 10000
def inside(users):
    # Processes of these users, zombies aside.
    found = []
    for name in os.listdir('/proc'):
        try:
            text = open(f'/proc/{name}/status').read() if name.isdigit() else ''
        except OSError:
            continue
        fields = dict(line.split(':', 1) for line in text.splitlines() if ':' in line)
        if fields and int(fields['Uid'].split()[1]) in users and 'Z' not in fields['State']:
            found.append(int(name))
    return found
"""


@pytest.mark.slow
def test_five_hundred_tasks_at_once_have_a_gate_each() -> None:
    """Each has a uid of its own, reaches its own gate by the address they all have, and no other's (HLD-3, GAT-2)."""
    code = (
        LAUNCH
        + """
out = os.open(work + '/out', os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
kept = os.dup(1)
os.dup2(out, 1)
listeners, tasks = {}, []
ask = 'exec 3<>/dev/tcp/127.0.0.1/3128 && read -r line <&3 && echo "$line $UID"'
for number in range(500):
    def deliver(sockets, number=number):
        wire = socket.socket(fileno=os.dup(sockets.of('proxy')[0]))
        listeners[wire.fileno()] = (wire, sockets.owner[1])
    tasks.append(launch(('/bin/bash', '-c', ask), deliver))
os.dup2(kept, 1)
poll = select.poll()
for fd in listeners:
    poll.register(fd, select.POLLIN)
for task in tasks:
    task.start()
met, until = 0, time.monotonic() + 200
while met < 500 and time.monotonic() < until:
    for fd, _ in poll.poll(1000):
        wire, uid = listeners[fd]
        there, _ = wire.accept()
        there.sendall(b'%d\\n' % uid)
        there.close()
        met += 1
for task in tasks:
    task.wait()
lines = open(work + '/out').read().split()
pairs = set(zip(lines[::2], lines[1::2]))
print(met, len(pairs), all(gate == user for gate, user in pairs), len({user for _, user in pairs}))
print(uid_fence.living().get('gates', []), inside({int(user) for _, user in pairs}))
import shutil
shutil.rmtree(work)
"""
    )
    assert fenced(code, patience=400) == "500 500 True 500\n[] []\n"


def test_the_257th_connection_of_one_task_is_dropped_and_others_are_unharmed() -> None:
    """Two tasks of one gate: the bound is each one's own, and what is dropped is in its record (GAT-6)."""
    code = (
        LAUNCH
        + """
import threading
from tidegate.gate.gate import Gate, GateTask
from tidegate.holds.inside import TaskSockets
from tidegate.model.verdict import Phase
from tidegate.policy.layers import command_line, join
from tidegate.runtime.served import serve_sockets
class Books:
    def __init__(self): self.events = []
    def record(self, event): self.events.append(event)
    def flush(self): pass
delivered = []
def deliver(sockets):
    delivered.append(TaskSockets(sockets.roles, tuple(os.dup(fd) for fd in sockets.descriptors)))
greedy = '''import socket, sys, time
wires = [socket.create_connection(('127.0.0.1', 3128)) for _ in range(300)]
for wire in wires: wire.sendall(b'CONNECT a')
time.sleep(1)
ended = 0
for wire in wires:
    wire.setblocking(False)
    try: ended += wire.recv(9) == b''
    except BlockingIOError: pass
    except OSError: ended += 1
open('greedy', 'w').write(str(ended)); time.sleep(2)'''
modest = '''import socket, time
time.sleep(1.5)
wire = socket.create_connection(('127.0.0.1', 3128))
wire.sendall(b'CONNECT a.test:443 HTTP/1.0' + b'\\\\r\\\\n' * 2)
open('modest', 'w').write(wire.recv(99).split()[1].decode())'''
tasks = [launch(('/usr/bin/python3', '-c', text), deliver) for text in (greedy, modest)]
books = [Books(), Books()]
gate = Gate(recorder=Books(), wall=time.time)
for number, sockets in enumerate(delivered):
    policy = join(command_line(profile='closed'))
    serve_sockets(gate, GateTask(f't{number}', policy, Phase.RUNTIME, recorder=books[number]), sockets, ())
threading.Thread(target=gate.run, daemon=True).start()
for task in tasks:
    task.start()
for task in tasks:
    task.wait()
reasons = [event.reason.word for event in books[0].events]
print(open(work + '/greedy').read(), open(work + '/modest').read(), reasons.count('too-many-connections'))
import shutil
shutil.rmtree(work)
sys.stdout.flush()
os._exit(0)
"""
    )
    assert fenced(code.replace("remove()", ""), patience=100) == "44 403 44\n"


STEPS = (
    "claimed", "before the table", "in the table", "handed over", "planned", "watched", "proven", "started",
    "releasing", "released",
)  # fmt: skip


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_each_step_it_leaves_nothing_that_a_sweep_does_not_take(step: str) -> None:
    """HLD-8: kill -9 of who launches; no process lives on, the table is as before, the uid is free again."""
    code = (
        LAUNCH
        + """
from tidegate.holds import launch as launching, uid as holding, uid_watcher
def die(*_a, **_k):
    os.kill(os.getpid(), 9)
def then_die(act):
    def both(*a, **k):
        act(*a, **k)
        die()
    return both
step = sys.argv[1]
def arm():
    claims, tenant = uid_claims.Claim, holding.Tenant
    if step == 'claimed': claims.enter = die
    elif step == 'before the table': uid_fence.change = die
    elif step == 'in the table': claims.enter = then_die(claims.enter)
    elif step == 'handed over': tenant.hand_over = then_die(tenant.hand_over)
    elif step == 'planned': tenant.plan = then_die(tenant.plan)
    elif step == 'watched': uid_watcher.Post.start = then_die(uid_watcher.Post.start)
    elif step == 'proven': tenant.let_go = then_die(tenant.let_go)
    elif step == 'releasing': claims.release = die
    elif step == 'released': uid_claims._clear = then_die(uid_claims._clear)
child = os.fork()
if child == 0:
    claim = uid_claims.claim(mine)
    arm()
    task = launch(('/bin/sleep', '0.2' if step.startswith('releas') else '60'), None, claim=claim)
    task.start()
    if step == 'started':
        while 'started' not in control.receive(task.control)[0]:
            pass
        die()
    task.wait()
    os._exit(1)
print(os.waitpid(child, 0)[1])
until = time.monotonic() + 20
while set(inside({mine})) and time.monotonic() < until:
    time.sleep(0.05)
print(set(inside({mine})))
uid_claims.sweep()
claim = None
while claim is None and time.monotonic() < until:
    time.sleep(0.05)
    claim = uid_claims.claim(mine)
print(uid_fence.living(), claim is not None)
import shutil
shutil.rmtree(work)
"""
    )
    assert fenced(code, step) == "9\nset()\n{} True\n"
