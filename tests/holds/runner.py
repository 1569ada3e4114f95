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
from typing import Any

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "src"), ROOT]

from tidegate.holds import canaries, control, linux  # noqa: E402 (found by the line above)
from tidegate.holds.hold import LaunchSpec, Share, find_hold  # noqa: E402
from tidegate.holds.inside import TaskSockets  # noqa: E402
from tidegate.model.errors import StartError  # noqa: E402

REFUSAL = b"HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n"


class Machine:
    """What there is outside: folders below `base`, and listeners that write down who came."""

    def __init__(self, base: str) -> None:
        self.home = os.path.join(base, "home")
        self.workspace = os.path.join(self.home, "work")
        self.hidden = os.path.join(self.home, ".config", "tidegate")
        self.hidden_link = os.path.join(self.home, ".state")
        self.absent = os.path.join(self.home, ".local", "share", "tidegate")
        self.readonly = os.path.join(self.workspace, "src")
        self.readonly_file = os.path.join(self.workspace, "pyproject.toml")
        self.runtime = os.path.join(base, "runtime")
        self.heard: list[str] = []
        self.sockets: list[socket.socket] = []
        self.files: list[str] = []
        for folder in (self.hidden, self.readonly, self.runtime, self.hidden_link + "-real/tidegate"):
            os.makedirs(folder)
        os.symlink(".state-real", self.hidden_link)
        for name, text in (
            (self.hidden + "/secret", "secret"),
            (self.readonly + "/code.py", "print()\n"),
            (self.readonly_file, "x = 1\n"),
        ):
            with open(name, "w", encoding="ascii") as file:
                file.write(text)

    def listen(self) -> dict[str, Any]:
        """Open the listeners and return where they are."""
        own = next((address for family, address in canaries._own_addresses() if family == socket.AF_INET), "")
        mark = f"tidegate-test-{os.getpid()}.sock"
        run = f"/run/{mark}" if os.access("/run", os.W_OK) else f"{self.runtime}/s"
        return {
            "tcp4": self._add(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            "open_tcp4": self._add(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0), expected=True),
            "tcp6": self._add(socket.AF_INET6, socket.SOCK_STREAM, ("::1", 0)),
            "udp4": self._add(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            "own4": own,
            "own4_tcp": self._add(socket.AF_INET, socket.SOCK_STREAM, (own, 0)) if own else 0,
            "unix_tmp": self._add_unix(f"/tmp/{mark}"),
            "unix_run": self._add_unix(run),
            "unix_home": self._add_unix(self.home + "/ctl.sock"),
            "unix_work": self._add_unix(self.workspace + "/app.sock"),
            "unix_folder": self._add_unix(self.home + "/agent/s"),
            "unix_abstract": self._add_unix(f"@{mark}"),
        }

    def late_paths(self) -> dict[str, str]:
        """Where `listen_late` will put its sockets."""
        return {
            "late_home": self.home + "/late.sock",
            "late_work": self.workspace + "/late.sock",
            "late_elsewhere": self.workspace + "/elsewhere.sock",
        }

    def listen_late(self) -> None:
        """Open more, when the task's view is built: at home, in the workspace, and from a namespace of its own."""
        paths = self.late_paths()
        self._add_unix(paths["late_home"])
        self._add_unix(paths["late_work"])
        here, there = socket.socketpair()
        child = os.fork()
        if child == 0:
            linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWNET)
            wire = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            wire.bind(paths["late_elsewhere"])
            socket.send_fds(there, [b"x"], [wire.fileno()])
            os._exit(0)
        wire = socket.socket(fileno=socket.recv_fds(here, 1, 1)[1][0])
        os.waitpid(child, 0)
        self.files.append(paths["late_elsewhere"])
        self._watch(wire)

    def close(self) -> None:
        """Close the listeners and remove their files."""
        for wire in self.sockets:
            wire.close()
        for name in self.files:
            if os.path.lexists(name):
                os.unlink(name)

    def _add(self, family: int, kind: int, address: tuple[str, int], *, expected: bool = False) -> int:
        wire = socket.socket(family, kind)
        try:
            wire.bind(address)
        except OSError:
            wire.close()
            return 9  # this machine has no such address
        self._watch(wire, expected=expected)
        port: int = wire.getsockname()[1]
        return port

    def _add_unix(self, address: str) -> str:
        wire = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        if address.startswith("@"):
            wire.bind("\0" + address[1:])
        else:
            os.makedirs(os.path.dirname(address), exist_ok=True)
            wire.bind(address)
            self.files.append(address)
        self._watch(wire)
        return address

    def _watch(self, wire: socket.socket, *, expected: bool = False) -> None:
        if wire.type == socket.SOCK_STREAM:
            wire.listen(16)
        if not expected:
            self.sockets.append(wire)
        else:
            self.open_to_all = wire

    def who_came(self) -> list[str]:
        """Which listeners were reached."""
        found = []
        for wire in self.sockets:
            wire.setblocking(False)
            try:
                wire.accept() if wire.type == socket.SOCK_STREAM else wire.recv(99)
            except BlockingIOError:
                continue
            found.append(str(wire.getsockname()))
        return found


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
    from tidegate.runtime.gate_process import serve_sockets

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
        capabilities.drop_all = lambda: None  # type: ignore[assignment]
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


def main(wishes: dict[str, Any]) -> dict[str, Any]:
    """Hold the command that `wishes` describe."""
    machine = Machine(wishes["base"])
    held = machine.listen() if wishes.get("listeners", True) else {}
    for name in ("home", "workspace", "hidden", "hidden_link", "absent", "readonly", "readonly_file"):
        held[name] = getattr(machine, name)
    if wishes.get("listeners", True):
        held |= machine.late_paths()
    held |= {"hold": wishes.get("table", wishes["hold"]), "port": 3128}
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
    table = os.path.join(workspace, "escapes.pyz")
    if "{table}" in wishes["argv"]:
        from tidegate.doctor.escapes.bundle import write_bundle

        write_bundle(table)
    spec = LaunchSpec(
        argv=tuple(word.replace("{table}", table) for word in wishes["argv"]),
        env=env,
        cwd=wishes.get("cwd") or workspace,
        workspace=workspace,
        shares=tuple(Share(path, ro) for path, ro in wishes.get("shares", ())),
        hidden=(machine.hidden, machine.hidden_link + "/tidegate", machine.absent, *wishes.get("hidden", ())),
        readonly=(machine.readonly, machine.readonly_file, machine.home + "/missing"),
        selftest=wishes.get("selftest", True),
        capture=wishes.get("capture", "off"),
        capture_ports=tuple(wishes.get("capture_ports", ())),
    )
    if "hole" in wishes:
        dig(wishes["hole"])
    if "refuse" in wishes:
        refuse(wishes["refuse"])
    answer: dict[str, Any] = {"held": held}
    said = []
    if wishes.get("say_when"):
        os.write(kept[1], b"building\n")
    try:
        task = find_hold(wishes["hold"]).launch(spec, GATES[wishes.get("gate", "refuses")])
    except StartError as error:
        answer |= {"error": str(error), "code": error.code}
    else:
        if wishes.get("wait_for_death"):
            os.write(kept[1], json.dumps({"init": task.pid, "front": os.getpid()}).encode() + b"\n")
        if wishes.get("listeners", True):
            machine.listen_late()
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
