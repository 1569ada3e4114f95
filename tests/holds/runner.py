"""Holds one command for a test and tells what came of it: `python runner.py JSON`, JSON on standard output.

A process of its own, because a hold makes its caller a subreaper and forks. Around the hold it sets up what a task
must not reach: listeners of every kind, files that are hidden and read-only, and a gate that refuses everything.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from contextlib import suppress
from typing import Any

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "src"), ROOT]

from tidegate.doctor.escapes.machine import Machine  # noqa: E402 (found by the line above)
from tidegate.holds import control  # noqa: E402
from tidegate.holds.hold import LaunchSpec, Share, find_hold, gate_port  # noqa: E402
from tidegate.holds.inside import TaskSockets  # noqa: E402
from tidegate.model.errors import StartError  # noqa: E402

REFUSAL = b"HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n"


def serve_refusals(sockets: TaskSockets) -> None:
    """Be the gate: refuse everything."""
    wire = socket.socket(fileno=os.dup(sockets.of("proxy")[0]))

    def serve() -> None:
        while True:
            connection, _ = wire.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(REFUSAL)

    threading.Thread(target=serve, daemon=True).start()
    for fd in sockets.of("announced"):
        threading.Thread(target=hear_all, args=(socket.socket(fileno=os.dup(fd)),), daemon=True).start()


def hear_all(wire: socket.socket) -> None:
    """Be who is told who comes, and let everybody come."""
    while wire.recv(64):
        pass


def say_yes(sockets: TaskSockets) -> None:
    """Be a gate that lets everything through."""
    global REFUSAL  # noqa: PLW0603 (this process serves one task)
    REFUSAL = b"HTTP/1.1 200 OK\r\n\r\n"
    serve_refusals(sockets)


def serve_truly(sockets: TaskSockets) -> None:
    """Be the gate that a run has, in a thread, with a policy that allows nothing."""
    import time

    from tidegate.gate.gate import Gate, GateTask
    from tidegate.model.verdict import Phase
    from tidegate.policy.layers import command_line, join
    from tidegate.runtime.served import serve_sockets

    class Nowhere:
        def record(self, _event: object) -> None: ...
        def flush(self) -> None: ...

    gate = Gate(recorder=Nowhere(), wall=time.time)  # noqa: TID251 (the clock comes in here)
    task = GateTask("t", join(command_line(profile="closed")), Phase.RUNTIME)
    copies = tuple(os.dup(fd) for fd in sockets.descriptors)
    serve_sockets(gate, task, TaskSockets(sockets.roles, copies), ())
    threading.Thread(target=gate.run, daemon=True).start()


GATES = {"refuses": serve_refusals, "allows": say_yes, "silent": lambda _sockets: None, "real": serve_truly}


def dig(hole: str) -> None:
    """Take one part of the hold out, so that the self-test has something to find."""
    from tidegate.holds import capabilities, launch, seccomp, tree, userns

    if hole == "network":
        userns.namespaces = lambda *, network: userns.EVERYTHING  # type: ignore[assignment]  # noqa: ARG005
        launch.network.listen = _listen_outside  # type: ignore[assignment]
    elif hole == "fence":
        from tidegate.holds import uid_fence, uid_table

        whole = uid_table.table_text
        uid_fence.table_text = lambda **more: whole(**more).replace("goto task", "accept")  # type: ignore[assignment]
    elif hole == "redirect":
        launch.capture.netfilter.messages = lambda _port: []  # type: ignore[assignment]
    elif hole == "resolver":
        from tidegate.gate.names import Names

        Names.answer = _answers_all  # type: ignore[method-assign]
    elif hole == "netfilter":
        launch.capture.netfilter.install = _no_netfilter  # type: ignore[assignment]
    elif hole == "filter":
        seccomp.install = lambda filter_bytes, *, listener=False: None  # type: ignore[assignment]  # noqa: ARG005
    elif hole == "capabilities":
        capabilities.drop_all = lambda _user=0: None  # type: ignore[assignment]
    elif hole == "tmp":
        tree.own_folders = lambda plan: None  # type: ignore[assignment]  # noqa: ARG005


def _no_netfilter(_port: int) -> None:
    raise OSError(95, os.strerror(95), "the nat chain capture")


def _answers_all(_self: object, message: bytes, *, stream: bool) -> bytes:
    assert not stream
    return message[:2] + b"\x81\x80" + message[4:]


def _listen_outside(port: int) -> int:
    return socket.create_server(("127.0.0.1", port)).detach()


def refuse(calls: dict[str, int]) -> None:
    """Be inside a filter that refuses these calls, as a container's does."""
    from tidegate.holds import bpf, capabilities, linux, seccomp

    program = bpf.Program()
    program.load(bpf.NUMBER)
    for name, code in calls.items():
        program.if_equal(linux.NUMBERS[name], f"refuse {code}")
    program.give(bpf.ALLOW)
    for code in set(calls.values()):
        program.label(f"refuse {code}")
        program.give(bpf.ERRNO | code)
    capabilities.no_new_privileges()
    seccomp.install(program.assemble())


def own_machine() -> None:
    """Have a network of our own in the machine's place: what is loaded and removed there is nobody else's."""
    from tidegate.holds import linux, network

    linux.unshare(linux.CLONE_NEWNET)
    network.raise_loopback()


def main(wishes: dict[str, Any]) -> dict[str, Any]:
    """Hold the command that `wishes` describe."""
    if wishes["hold"] == "uid":
        own_machine()
        wishes["shares"] = [*wishes.get("shares", ()), (sys.base_prefix, True), (ROOT, True)]
    machine = Machine(wishes["base"])
    held = machine.listen() if wishes.get("listeners", True) else {}
    held |= machine.paths()
    if wishes.get("listeners", True):
        held |= machine.late_paths()
    if "hole" in wishes:
        dig(wishes["hole"])
    hold = find_hold(wishes["hold"])
    held |= {"hold": wishes.get("table", wishes["hold"]), "port": gate_port(hold)}
    leaked = socket.socket()
    leaked.set_inheritable(True)
    workspace = wishes.get("workspace") or machine.workspace
    os.makedirs(workspace, exist_ok=True)
    out = os.open(os.path.join(wishes["base"], "out"), os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    null = os.open("/dev/null", os.O_RDONLY)
    kept = [os.dup(fd) for fd in range(3)]
    for target, source in ((0, null), (1, out), (2, out)):
        os.dup2(source, target)
    env = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": machine.home,
        "TMPDIR": "/tmp/mine",
        "XDG_RUNTIME_DIR": machine.runtime,
        "HELD": json.dumps(held),
    } | wishes.get("env", {})
    spec = LaunchSpec(
        argv=tuple(wishes["argv"]),
        env=env,
        cwd=wishes.get("cwd") or workspace,
        workspace=workspace,
        shares=tuple(Share(path, ro) for path, ro in wishes.get("shares", ())),
        hidden=(machine.hidden, machine.hidden_link + "/tidegate", machine.absent, *wishes.get("hidden", ())),
        readonly=(machine.readonly, machine.readonly_file, machine.home + "/missing"),
        guarded=tuple(wishes.get("guarded", ())),
        closed=tuple(wishes.get("closed", ())),
        writable=tuple(wishes.get("writable", ())),
        strict=wishes.get("strict", False),
        trust=tuple((path, text.encode()) for path, text in wishes.get("trust", ())),
        selftest=wishes.get("selftest", True),
        capture=wishes.get("capture", "off"),
        capture_ports=tuple(wishes.get("capture_ports", ())),
    )
    if "refuse" in wishes:
        refuse(wishes["refuse"])
    answer: dict[str, Any] = {"held": held}
    said = []
    if wishes.get("say_when"):
        os.write(kept[1], b"building\n")
    try:
        task = hold.launch(spec, GATES[wishes.get("gate", "refuses")])
    except StartError as error:
        answer |= {"error": str(error), "code": error.code}
    else:
        if wishes.get("wait_for_death"):
            os.write(kept[1], json.dumps({"init": task.pid, "front": os.getpid()}).encode() + b"\n")
        if wishes.get("listeners", True):
            machine.listen_late()
        with suppress(OSError):  # it may have been ended before it began
            task.start()
            while received := control.receive(task.control):
                said.append(received[0])
        answer["init_status"] = task.wait()
        answer["said"] = said
        ended = [message for message in said if message.startswith("exited ")]
        if ended:
            answer["status"] = os.waitstatus_to_exitcode(int(ended[-1].split()[1]))
    for target, fd in enumerate(kept):
        os.dup2(fd, target)
    answer["heard"] = machine.who_came()
    machine.close()
    with open(os.path.join(wishes["base"], "out"), encoding="utf-8", errors="replace") as file:
        answer["out"] = file.read()
    return answer


if __name__ == "__main__":
    json.dump(main(json.loads(sys.argv[1])), sys.stdout)
    sys.stdout.flush()
    os._exit(0)  # a gate in a thread must not see the interpreter being taken down
