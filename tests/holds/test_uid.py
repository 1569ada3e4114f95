"""The hold `uid` with many tasks, under kill -9, and with one that takes more than its share."""

from __future__ import annotations

import pytest

from tests.unit.holds.apart import ROOT
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
greedy = '''import os, socket, sys, time
wires = [socket.create_connection(('127.0.0.1', 3128)) for _ in range(300)]
for wire in wires:
    try: wire.sendall(b'CONNECT a')
    except OSError: pass
    wire.setblocking(False)
def is_ended(wire):
    try: return wire.recv(9) == b''
    except BlockingIOError: return False
    except OSError: return True
ended, end = set(), time.monotonic() + 60
while len(ended) < 44 and time.monotonic() < end:
    ended.update(wire for wire in wires if wire not in ended and is_ended(wire))
    time.sleep(0.05)
open('full', 'w').close()
while not os.path.exists('modest') and time.monotonic() < end:
    time.sleep(0.05)
ended.update(wire for wire in wires if wire not in ended and is_ended(wire))
open('greedy', 'w').write(str(len(ended)))'''
modest = '''import os, socket, time
while not os.path.exists('full'): time.sleep(0.05)
wire = socket.create_connection(('127.0.0.1', 3128))
wire.sendall(b'CONNECT a.test:443 HTTP/1.0' + b'\\\\r\\\\n' * 2)
said = wire.recv(99).split()[1].decode()
open('new', 'w').write(said)
os.rename('new', 'modest')'''
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
    assert fenced(code, patience=100) == "44 403 44\n"


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
until = time.monotonic() + 60
claim = None
while claim is None and time.monotonic() < until:
    time.sleep(0.05)
    uid_claims.sweep()
    claim = uid_claims.claim(mine)
print(set(inside({mine})))  # what was on its way to the uid held the claim
print(uid_fence.living(), claim is not None)
import shutil
shutil.rmtree(work)
"""
    )
    assert fenced(code, step) == "9\nset()\n{} True\n"


def test_under_a_server_commands_are_users_and_end_with_their_table() -> None:
    """serve, task create, exec: a uid each, 70 where the table is removed, which is then put back (HLD-3, HLD-7)."""
    code = """
import glob, subprocess, time
from tests.product import LAUNCHER
home = tempfile.mkdtemp(prefix='tidegate-uid-', dir='/var/tmp')
work = home + '/work'
os.mkdir(work)
env = {'PATH': '/usr/sbin:/usr/bin:/bin', 'HOME': home, 'XDG_STATE_HOME': home + '/state'}
uid_fence.run(('delete', 'table', 'inet', 'tidegate'))
def tidegate(*words):
    return subprocess.run([LAUNCHER, *words], env=env, cwd=work, capture_output=True, text=True, timeout=100)
server = subprocess.Popen([LAUNCHER, 'serve', '--no-portal'], env=env, cwd=work, stderr=subprocess.DEVNULL)
try:
    until = time.monotonic() + 60
    while not os.path.exists(home + '/state/tidegate/run/front.sock') and time.monotonic() < until:
        time.sleep(0.05)
    print(uid_fence.rules() is not None)
    task = tidegate('task', 'create', '--hold', 'uid').stdout.split()[0]
    first, second = (tidegate('exec', task, '--', 'id', '-u').stdout.strip() for _ in range(2))
    print(first != second, first.isdigit(), len(uid_fence.living().get('gates', [])))
    words = [LAUNCHER, 'exec', task, '--hold', 'uid', '--', 'sh', '-c', 'echo up; exec sleep 1000']
    command = subprocess.Popen(words, env=env, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    command.stdout.readline()
    uid_fence.run(('flush', 'ruleset'))
    since = time.monotonic()
    said = command.communicate(timeout=100)[1]
    print(command.returncode, 'was removed or changed' in said)
    while uid_fence.rules() is None and time.monotonic() < since + 100:
        time.sleep(0.1)
    print(tidegate('exec', task, '--hold', 'uid', '--', 'id', '-u').stdout.strip().isdigit())
    log = ''.join(open(path).read() for path in glob.glob(home + '/state/tidegate/log/*.jsonl'))
    print(log.count('hold.table-lost'))
finally:
    server.terminate()
    server.wait()
import shutil
shutil.rmtree(home)
"""
    assert fenced("sys.path.insert(0, sys.argv[1])\n" + code, ROOT, patience=200).splitlines() == [
        "True", "True True 0", "70 True", "True", "1",
    ]  # fmt: skip


def test_no_other_machine_reaches_a_server_of_a_task() -> None:
    """A server on every address answers loopback; towards another address the table lets no answer out (HLD-3)."""
    code = """
import subprocess, threading, time
subprocess.run(['ip', 'address', 'add', '10.9.9.9/32', 'dev', 'lo'], check=True)
uid_fence.change('create', elements(mine, Ports(9)))
reading, writing = os.pipe()
child = os.fork()
if child == 0:
    os.setresgid(mine, mine, mine)
    os.setresuid(mine, mine, mine)
    wire = socket.create_server(('0.0.0.0', 0))
    os.write(writing, b'%d' % wire.getsockname()[1])
    time.sleep(30)
    os._exit(0)
port = int(os.read(reading, 9))
def reach(address):
    with socket.socket() as wire:
        wire.settimeout(1)
        wire.bind((address, 0))
        try:
            return wire.connect((address, port)) is None
        except OSError as error:
            return type(error).__name__
print(reach('127.0.0.1'), reach('10.9.9.9'))
os.kill(child, 9)
os.waitpid(child, 0)
"""
    first = "mine = 30000 + os.getpid() % 10000\n"
    assert fenced(first + code) in ("True TimeoutError\n", "True ConnectionRefusedError\n")
