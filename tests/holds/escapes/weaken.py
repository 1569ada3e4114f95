"""A front that makes its hold worse on purpose: `python weaken.py SWITCH,SWITCH ORDER`.

Each switch takes one part of the hold out, in this process and what it forks, before the table is held as ever. The
product has no such switch: this file replaces the parts from outside. Rows must be harmless where they work, and some
that are aimed at PID 1 are not where there is no PID namespace: weakenings.py names the rows for each.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

SWITCHES: dict[str, Callable[[dict[str, Any]], None]] = {}


def switch(act: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    """Name a switch; it is given the order that the keeper wrote."""
    SWITCHES[act.__name__] = act
    return act


@switch
def no_filter(_order: dict[str, Any]) -> None:
    """A filter that lets every call through."""
    from tidegate.holds import bpf, seccomp

    def program(_kind: str, _machine: str = "") -> bytes:
        allowing = bpf.Program()
        allowing.give(bpf.ALLOW)
        return allowing.assemble()

    seccomp.program = program


@switch
def no_families(_order: dict[str, Any]) -> None:
    """A filter without the list of families and protocols."""
    from tidegate.holds import seccomp

    def families(program: Any, *, internet: bool, datagrams: bool = True) -> None:  # noqa: ARG001
        for name in ("socket", "socketpair"):
            program.label(name)
        program.give(seccomp.ALLOW)

    seccomp._families = families


@switch
def no_watcher(_order: dict[str, Any]) -> None:
    """Connections to unix sockets are made by the kernel as ever."""
    from tidegate.holds import seccomp

    seccomp.NOTIFY = seccomp.ALLOW


@switch
def nobody_to_hand_to(_order: dict[str, Any]) -> None:
    """A container in which the watcher's socket is not where its starter looks for it."""
    from tidegate.holds.container import starter

    program = starter.program
    starter.program = lambda folder: program(folder).replace(b"/socket\0", b"/sacket\0")


@switch
def too_strict(_order: dict[str, Any]) -> None:
    """A filter that refuses what programs need: sockets, namespaces, files to write, tracing."""
    from tidegate.holds import bpf, linux, seccomp

    x86 = linux.MACHINE == "x86_64"
    numbers = (41, 53, 101, 272, 302) if x86 else (198, 199, 117, 97, 261)  # socket(pair), ptrace, unshare, prlimit64
    openat, renames = (257, (82, 264)) if x86 else (56, (38,))

    def program(_kind: str, _machine: str = "") -> bytes:
        refusing = bpf.Program()
        refusing.load(bpf.NUMBER)
        for number in (*numbers, *renames):
            refusing.if_equal(number, "refused")
        refusing.if_equal(openat, "openat")
        refusing.give(bpf.ALLOW)
        refusing.label("openat")
        refusing.load(bpf.argument(2))
        refusing.if_any_bit(os.O_WRONLY | os.O_NOCTTY, "refused", "allowed")
        refusing.label("allowed")
        refusing.give(bpf.ALLOW)
        refusing.label("refused")
        refusing.give(bpf.ERRNO | 1)
        return refusing.assemble()

    seccomp.program = program
    launch_checks_nothing()


def launch_checks_nothing() -> None:
    """Leave out what is checked at every start, even without a self-test."""
    from tidegate.holds import selftest

    selftest.check_confinement = lambda *_, **__: None
    selftest.check_watcher = lambda *_: None


@switch
def capabilities_kept(_order: dict[str, Any]) -> None:
    """Every capability of the task's namespaces stays, for programs that are executed, too."""
    import struct

    from tidegate.holds import capabilities, linux

    def keep(_user: int = 0) -> None:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            permitted = next(int(line.split()[1], 16) for line in file if line.startswith("CapPrm:"))
        words = struct.pack("6I", *(part for part in (permitted & 0xFFFFFFFF, permitted >> 32) for _ in range(3)))
        linux.call("capset", capabilities._VERSION_3.to_bytes(4, "little") + bytes(4), words)
        for number in range(64):
            if permitted >> number & 1:
                linux.prctl(linux.PR_CAP_AMBIENT, 2, number)  # PR_CAP_AMBIENT_RAISE

    capabilities.drop_all = keep
    launch_checks_nothing()


@switch
def privileges_gained(_order: dict[str, Any]) -> None:
    """Set-user-id programs work: no no_new_privs, and file systems without nosuid."""
    from tidegate.holds import capabilities, mounts

    capabilities.no_new_privileges = lambda: None
    mounts.SAFE &= ~2
    launch_checks_nothing()


@switch
def open_to_others(_order: dict[str, Any]) -> None:
    """Init can be traced."""
    from tidegate.holds import capabilities

    capabilities.close_to_others = lambda: None


@switch
def kernel_files_open(_order: dict[str, Any]) -> None:
    """A /proc and /sys without masks, writable."""
    from tidegate.holds import kernel_files, mounts

    def make_proc(_masks: object) -> None:
        mounts.attach(mounts.new_file_system("proc"), "/proc")

    kernel_files.make_proc = make_proc
    kernel_files.close_sys = lambda _masks: None
    kernel_files.close_elsewhere = lambda _table, _masks: None


@switch
def machines_devices(_order: dict[str, Any]) -> None:
    """The machine's /dev."""
    from tidegate.holds import device, masks, mounts, name_files

    mounts.SAFE &= ~4  # MOUNT_ATTR_NODEV
    masks.WORKSHOP = name_files.WORKSHOP = "/mnt"
    device.make_dev = lambda _nodes: None
    device.finish_dev = lambda: None


@switch
def machines_folders(_order: dict[str, Any]) -> None:
    """The machine's /tmp, /run and runtime folder, in which sockets are not covered."""
    from tidegate.holds import tree

    tree.own_folders = lambda _plan: None
    sockets_uncovered(_order)


@switch
def sockets_uncovered(_order: dict[str, Any]) -> None:
    """Sockets of the machine that are in sight get no cover."""
    from tidegate.holds import plan

    plan.listed_sockets = lambda: ()


@switch
def nothing_hidden(order: dict[str, Any]) -> None:
    """What is to be hidden is in sight."""
    order["hidden"] = []


@switch
def nothing_read_only(order: dict[str, Any]) -> None:
    """What is to be read-only can be written."""
    order["readonly"] = []


@switch
def later_files_open(_order: dict[str, Any]) -> None:
    """What would run later is not looked for."""
    from tidegate.doctor.escapes import held
    from tidegate.runtime.guarded import Guarded

    held.guarded_files = lambda *_: Guarded((), (), ())


@switch
def home_read_only(order: dict[str, Any]) -> None:
    """The whole home folder of the person is read-only."""
    order["readonly"].append(order["person"])


@switch
def ports_unmarked(_order: dict[str, Any]) -> None:
    """A gate that does not ask whose port it is."""
    from tidegate.gate.marks import Marks

    Marks.__contains__ = lambda _self, _port: False


@switch
def installation_hidden(order: dict[str, Any]) -> None:
    """What is to be read-only is not in sight at all."""
    order["hidden"] += order["readonly"][:1]


@switch
def names_free(_order: dict[str, Any]) -> None:
    """The names that lead to protected files are not held in place."""
    from tidegate.holds import tree

    tree.hold_in_place = lambda _pins, _masks: None


@switch
def hosts_network(order: dict[str, Any]) -> None:
    """The network of the machine around the hold; the gate listens there, and has no other ports to meet or publish."""
    from tidegate.holds import launch, userns

    userns.namespaces = lambda *, network: userns.EVERYTHING  # noqa: ARG005
    launch.network.listen = lambda port: socket.create_server(("127.0.0.1", port)).detach()
    order["services"] = order["publish"] = []


@switch
def no_rules(_order: dict[str, Any]) -> None:
    """Netfilter has no rules."""
    from tidegate.holds import netfilter

    netfilter.messages = lambda _port: []


@switch
def not_captured(_order: dict[str, Any]) -> None:
    """Nothing is captured: no listeners, no routes."""
    from tidegate.doctor.escapes import held

    held.ON = held.OFF


@switch
def machines_name_files(_order: dict[str, Any]) -> None:
    """The machine's resolv.conf, hosts and nsswitch.conf."""
    from tidegate.holds import plan

    plan.name_files = lambda *_: ()


@switch
def gate_lets_all_through(_order: dict[str, Any]) -> None:
    """A gate without a policy, and without a look at addresses."""
    from tidegate.doctor.escapes import held
    from tidegate.policy.layers import command_line, join

    policy = join(command_line(profile="audit"))
    held.join = lambda *_layers: policy


@switch
def careless_gate(_order: dict[str, Any]) -> None:
    """A proxy that believes what it is told and passes everything on to the allowed origin."""
    import careless

    from tidegate.runtime import gate_process

    gate_process.gate_main = careless.gate_main


@switch
def careless_tools(_order: dict[str, Any]) -> None:
    """Tools that take whatever comes, by any name, and give their programs all there is."""
    from tidegate.tools import calls, http, program

    run = program.run

    def careless(argv: Any, executable: str, data: bytes, environ: Any, **how: Any) -> Any:
        text = str(json.loads(data).get("text"))
        return run([*argv, text], executable, data, environ, **how | {"names": tuple(environ)})

    program.run = careless
    calls.fault = lambda _schema, _value: ""
    calls.read = lambda data, _most: json.loads(data)
    http.Conversation._route = lambda self, _head, _path: next(iter(self._tools.values()))


@switch
def no_tools(_order: dict[str, Any]) -> None:
    """A task that was given none."""
    from tidegate.doctor.escapes import held

    held.with_tools = lambda _order, _tools, _link, act: act()


@switch
def no_listener(_order: dict[str, Any]) -> None:
    """A filter that lets every call through, and nobody who answers for any."""
    from tidegate.holds import capabilities, confine, seccomp

    no_filter(_order)

    def enter(kind: str, user: int = 0) -> None:
        capabilities.drop_all(user)
        capabilities.no_new_privileges()
        seccomp.install(seccomp.program(kind))

    confine.enter = enter
    launch_checks_nothing()


@switch
def machines_users(_order: dict[str, Any]) -> None:
    """The user namespace of the machine: for root, whose rights then count everywhere."""
    from tidegate.holds import linux, userns

    before = userns.namespaces
    userns.namespaces = lambda *, network: before(network=network) & ~linux.CLONE_NEWUSER
    userns.write_maps = lambda _pid: None
    call = linux.call
    linux.call = lambda name, *arguments: 0 if name == "setns" else call(name, *arguments)  # the watcher is there


@switch
def nothing(_order: dict[str, Any]) -> None:
    """The hold as it is: for what a file's own permissions hold, tried by whom they let."""


@switch
def forwarding_resolver(_order: dict[str, Any]) -> None:
    """A resolver that asks outside what it is asked."""
    from tidegate.doctor.escapes.world import RESOLVER
    from tidegate.gate.names import Names

    def answer(_self: object, message: bytes, *, stream: bool) -> bytes:  # noqa: ARG001
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire:
            wire.settimeout(2)
            wire.connect((RESOLVER, 53))
            wire.send(message)
            return wire.recv(4096)

    Names.answer = answer


@switch
def descriptor_inherited(_order: dict[str, Any]) -> None:
    """A socket of the front's that nobody closes."""
    from tidegate.holds import control

    kept = socket.socket()
    kept.set_inheritable(True)
    kept.detach()
    control.close_all_but = lambda _kept: None
    os.closerange = lambda _first, _last: None


@switch
def machines_processes(_order: dict[str, Any]) -> None:
    """The PID namespace of the machine, and its /proc."""
    from tidegate.holds import kernel_files, linux, userns

    before = userns.namespaces
    userns.namespaces = lambda *, network: before(network=network) & ~linux.CLONE_NEWPID
    kernel_files.make_proc = lambda _masks: None


@switch
def abstract_names_shared(_order: dict[str, Any]) -> None:
    """Nothing scopes abstract sockets."""
    from tidegate.holds import landlock

    landlock.close_abstract_sockets = lambda: False


@switch
def no_fence(_order: dict[str, Any]) -> None:
    """A table that lets users of the range send what they like."""
    from tidegate.holds import uid_fence

    whole = uid_fence.table_text
    uid_fence.table_text = lambda *, nflog: whole(nflog=nflog).replace("goto task", "accept")


@switch
def abstract_names_unjudged(_order: dict[str, Any]) -> None:
    """Whoever listens at an abstract name counts as the task's."""
    from tidegate.holds.uid_watcher import UidWatcher

    UidWatcher._is_own = lambda _self, _name: True


@switch
def marks_for_files(_order: dict[str, Any]) -> None:
    """No second filter for what outlives a user of its own."""
    from tidegate.holds import bpf, uid_filter

    allowing = bpf.Program()
    allowing.give(bpf.ALLOW)
    uid_filter.program = allowing.assemble


@switch
def servers_unmarked(_order: dict[str, Any]) -> None:
    """Sockets that listen are not marked as the task's."""
    from tidegate.holds.uid_watcher import UidWatcher

    UidWatcher._mark = lambda _self, _wire: None


@switch
def no_account(_order: dict[str, Any]) -> None:
    """A user without a line in passwd."""
    from tidegate.holds import uid

    uid.account_files = lambda _uid: ()


@switch
def not_confined(_order: dict[str, Any]) -> None:
    """Without the command's own Landlock domain; init's stays, which keeps signals in."""
    from tidegate.holds import landlock

    landlock.confine = lambda _files, _port: None


@switch
def landlock_alone(_order: dict[str, Any]) -> None:
    """Landlock without the filter, and so without the watcher: all calls are the kernel's."""
    from tidegate.holds import landlock_init, seccomp

    no_filter(_order)
    landlock_init.program = seccomp.program


@switch
def watcher_refuses(_order: dict[str, Any]) -> None:
    """A watcher that refuses whatever it is asked."""
    from tidegate.holds.landlock_watcher import LandlockWatcher

    def answer(self: Any, identity: int, _code: int, _flags: int = 0) -> None:
        from tidegate.holds.on_behalf import send_answer

        send_answer(self._listener, identity, 1)

    LandlockWatcher._answer = answer
    LandlockWatcher._give = lambda self, identity, _made, _flags: answer(self, identity, 1)
    launch_checks_nothing()


@switch
def rights_kept(_order: dict[str, Any]) -> None:
    """Root's capabilities stay."""
    from tidegate.holds import capabilities

    capabilities.drop_what_there_is = lambda: None
    launch_checks_nothing()


def main() -> None:
    """Take the parts out and hold the table."""
    order = json.loads(sys.argv[2])
    sys.path[:] = order["path"]
    order["selftest"] = False
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    for name in sys.argv[1].split(","):
        SWITCHES[name](order)
    from tidegate.doctor.escapes.held import main as hold

    hold(order)


if __name__ == "__main__":
    main()
