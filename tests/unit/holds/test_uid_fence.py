"""The table of the hold `uid` in a kernel, in a network namespace of its own: what users of the range reach."""

from __future__ import annotations

from tests.unit.holds.uid_apart import NEEDS_ROOT, fenced

pytestmark = NEEDS_ROOT

GATE = """
gate, port = server()
other, elsewhere = server()
uid_fence.change('create', elements(30001, Ports(port, port)))
"""


def test_a_user_without_an_element_reaches_nothing_and_is_told_at_once() -> None:
    """The range is fenced from the first instant: each try ends at once and is counted (HLD-3, B82, B84)."""
    code = """
    uid_routes.keep_at_home()
    _, port = server()
    tries = [(connect, '127.0.0.1', port), (connect, '127.0.0.1', 3128), (connect, '1.2.3.4', 80),
             (connect, '::1', port), (connect, '2001:db8::1', 443), (datagram, '1.2.3.4', 443),
             (datagram, '127.0.0.1', 53)]
    print(*(as_user(30001, *one) for one in tries), uid_fence.refused()[30001] >= len(tries))
    """
    assert fenced(code) == "ECONNREFUSED " * 5 + "EPERM EPERM True\n"


def test_a_user_reaches_its_own_gate_by_every_way_and_no_other() -> None:
    """Its proxy, any address and its gate's port lead to its gate; the port is nobody else's (HLD-3, HLD-6, GAT-2)."""
    code = (
        GATE
        + """
uid_routes.keep_at_home()
ways = [('127.0.0.1', 3128), ('127.0.0.1', port), ('1.2.3.4', 80), ('198.18.1.1', 22)]
print(*(as_user(30001, connect, *way) == '%s %d' % way for way in ways))
print(*(as_user(30002, connect, *way) for way in ways))
print(as_user(12345, connect, '127.0.0.1', port), as_user(12345, connect, '127.0.0.1', elsewhere) != '')
"""
    )
    assert fenced(code) == "True True True True\n" + "ECONNREFUSED " * 3 + "ECONNREFUSED\nECONNREFUSED True\n"


def test_services_of_the_machine_are_not_the_tasks() -> None:
    """B82, B84: another local port is refused to the user of a gate, and an ordinary user still reaches it."""
    code = (
        GATE
        + """
print(as_user(30001, connect, '127.0.0.1', elsewhere), as_user(12345, connect, '127.0.0.1', elsewhere)[:9])
"""
    )
    assert fenced(code) == "ECONNREFUSED 127.0.0.1\n"


def test_where_a_connection_was_going_is_known() -> None:
    """SO_ORIGINAL_DST on the gate's socket is what the user's program asked for (HLD-6)."""
    code = (
        GATE
        + """
uid_routes.keep_at_home()
as_user(30001, connect, '93.184.216.34', 443)
wire, _ = gate.accept()
raw = wire.getsockopt(0, 80, 16)
print(socket.inet_ntoa(raw[4:8]), raw[2] << 8 | raw[3])
"""
    )
    assert fenced(code) == "93.184.216.34 443\n"


def test_a_port_in_the_set_of_own_servers_needs_the_mark_of_its_socket() -> None:
    """A port that was the task's own and is a service's now is refused; with the mark it is the task's (HLD-3)."""
    code = (
        GATE
        + """
uid_fence.change('add', [('own', '30001 . %d' % elsewhere)])
print(as_user(30001, connect, '127.0.0.1', elsewhere))
other.setsockopt(1, 36, uid_table.mark_of(30001))  # SO_MARK
print(as_user(30001, connect, '127.0.0.1', elsewhere) == '127.0.0.1 %d' % elsewhere)
print(as_user(30002, connect, '127.0.0.1', elsewhere))
print(as_user(12345, connect, '127.0.0.1', elsewhere) == '127.0.0.1 %d' % elsewhere)
"""
    )
    assert fenced(code) == "ECONNREFUSED\nTrue\nECONNREFUSED\nTrue\n"


def test_nothing_leaves_the_machine_without_the_table() -> None:
    """The routing rule keeps what users send here without the table; others are not concerned (HLD-7)."""
    code = (
        GATE
        + """
uid_routes.keep_at_home()
uid_fence.run(('delete', 'table', 'inet', 'tidegate'))
def source(address):
    with socket.socket(2, 2) as wire:
        wire.connect((address, 9))
        return wire.getsockname()[0]
print(as_user(30001, datagram, '1.2.3.4', 9), as_user(30001, source, '1.2.3.4'), as_user(12345, source, '1.2.3.4'))
"""
    )
    assert fenced(code) == "silence 198.18.0.1 ENETUNREACH\n"


def test_a_table_that_differs_is_replaced_while_nobody_lives_by_it() -> None:
    """One rule less is noticed; with a user in it nothing is touched and the start fails (HLD-7)."""
    code = """
    from tidegate.model.errors import StartError
    whole = uid_fence.rules()
    uid_fence.run(('flush', 'chain', 'inet', 'tidegate', 'task'))
    print(uid_fence.rules() == whole)
    uid_fence.ensure()
    print(uid_fence.rules() == whole)
    uid_fence.change('create', elements(30001, Ports(9)))
    print(uid_fence.rules() == whole)
    uid_fence.run(('flush', 'chain', 'inet', 'tidegate', 'task'))
    try:
        uid_fence.ensure()
    except StartError as error:
        print(error.code)
    """
    assert fenced(code) == "False\nTrue\nTrue\nuid-table\n"


def test_without_nft_there_is_a_line_that_says_what_to_install() -> None:
    """HLD-7: the program is missing, or has no right."""
    code = """
    from tidegate.model.errors import StartError
    uid_fence.PLACES = ('/nowhere/nft',)
    try:
        uid_fence.ensure()
    except StartError as error:
        print(error.code, error.exit_status, 'install nftables' in error.fix)
    """
    assert fenced(code) == "uid-table 78 True\n"


def test_nothing_to_loopback_leaves_by_another_interface() -> None:
    """IP_PKTINFO, IP_UNICAST_IF and SO_BINDTODEVICE name the interface; so does one bound while it is open (HLD-3)."""
    code = (
        GATE
        + """
import struct, subprocess
def ip(*words):
    subprocess.run(['ip', *words], check=True)
uid_fence.change('add', elements(30002, Ports(port, names=9)))
ip('link', 'add', 'out0', 'type', 'veth', 'peer', 'name', 'peer0')
for name in ('out0', 'peer0'):
    ip('link', 'set', name, 'up')
ip('address', 'add', '10.9.9.2/24', 'dev', 'out0')
ip('address', 'add', '2001:db8:9::2/64', 'dev', 'out0', 'nodad')
for router in ('10.9.9.1', '2001:db8:9::1'):
    ip('neigh', 'add', router, 'lladdr', '02:00:00:00:00:01', 'dev', 'out0')
    ip(*(['-6'] if ':' in router else []), 'route', 'add', 'default', 'via', router, 'dev', 'out0')
uid_routes.keep_at_home()
heard = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3))
heard.bind(('peer0', 0))
out = socket.if_nametoindex('out0')
def named(level, option, data, address):
    with socket.socket(10 if ':' in address else 2, 2) as wire:
        return wire.sendmsg([b'tidegate-leak'], [(level, option, data)], 0, (address, 9))
def bound(level, option, data, kind):
    with socket.socket(2, kind) as wire:
        wire.setsockopt(level, option, data)
        wire.settimeout(5)
        wire.connect(('127.0.0.1', 9 if kind == 2 else port))
        return wire.send(b'tidegate-leak')
def bound_later():
    with socket.create_connection(('127.0.0.1', port), 5) as wire:
        wire.setsockopt(1, 25, b'out0')
        return wire.send(b'tidegate-leak')
device, index = (1, 25, b'out0'), (0, 50, struct.pack('!I', out))
print(as_user(30002, named, 0, 8, struct.pack('=I8x', out), '127.0.0.1'),
      as_user(30002, named, 41, 50, bytes(16) + struct.pack('=I', out), '::1'),
      as_user(30002, bound, *device, 2), as_user(30002, bound, *index, 2), as_user(30002, bound, *device, 1))
as_user(30002, bound_later)
print(as_user(30002, connect, '127.0.0.1', port) == '127.0.0.1 %d' % port)
heard.settimeout(2)
leaks = set()
try:
    while True:
        packet = heard.recv(2000)[14:]
        if b'tidegate-leak' in packet or packet[9:10] == bytes((6,)):
            leaks.add(packet)
except TimeoutError:
    print(leaks)
"""
    )
    assert fenced(code) == "EPERM EPERM EPERM EPERM ECONNREFUSED\nTrue\nset()\n"


def test_a_source_that_is_not_this_machines_reaches_nothing() -> None:
    """Where the machine lets anybody bind foreign addresses, an answer to one would leave it (HLD-3).

    ip_nonlocal_bind of net.ipv4 and net.ipv6 (ip-sysctl.rst). The neighbours: its own addresses, by the same ways.
    """
    code = (
        GATE
        + """
import subprocess, threading
def ip(*words):
    subprocess.run(['ip', *words], check=True)
for version in ('ipv4', 'ipv6'):
    with open(f'/proc/sys/net/{version}/ip_nonlocal_bind', 'w') as file:
        file.write('1')
ip('link', 'add', 'out0', 'type', 'veth', 'peer', 'name', 'peer0')
for name in ('out0', 'peer0'):
    ip('link', 'set', name, 'up')
ip('address', 'add', '10.9.9.2/24', 'dev', 'out0')
ip('address', 'add', '2001:db8:9::2/64', 'dev', 'out0', 'nodad')
for router in ('10.9.9.1', '2001:db8:9::1'):
    ip('neigh', 'add', router, 'lladdr', '02:00:00:00:00:01', 'dev', 'out0')
    ip(*(['-6'] if ':' in router else []), 'route', 'add', 'default', 'via', router, 'dev', 'out0')
uid_routes.keep_at_home()
names = {}
for family, address in ((2, '127.0.0.1'), (10, '::1')):
    names[family] = wire = socket.socket(family, 2)
    wire.bind((address, 0 if family == 2 else names[2].getsockname()[1]))
    def answer(wire=wire):
        while True:
            data, where = wire.recvfrom(99)
            wire.sendto(b'tidegate-leak ' + data, where)
    threading.Thread(target=answer, daemon=True).start()
uid_fence.change('add', elements(30003, Ports(port, names=names[2].getsockname()[1])))
heard = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3))
heard.bind(('peer0', 0))
def ask(source, address):
    with socket.socket(10 if ':' in address else 2, 2) as wire:
        wire.settimeout(30)
        wire.bind((source, 0))
        wire.connect((address, 53))
        wire.send(b'x')
        return wire.recv(99).decode()
for source, address in (('8.8.8.8', '127.0.0.1'), ('2600:beef::8', '::1'), ('2600:beef::8', '2600:beef::9')):
    print(as_user(30003, ask, source, address))
heard.setblocking(False)
leaked = 0
try:
    while True:
        leaked += b'tidegate-leak' in heard.recv(2000)
except BlockingIOError:
    pass
print(leaked)
for source, address in (('127.0.0.1', '127.0.0.1'), ('::1', '::1'), ('::1', '2600:beef::9')):
    print(as_user(30003, ask, source, address))
"""
    )
    assert fenced(code) == "ENETUNREACH\nEPERM\nEPERM\n0\n" + "tidegate-leak x\n" * 3
