"""Runs tidegate's own gate process on a listener of the bench, with everything on, as `tidegate run` does.

    python -I -S bench/gate_driver.py --port N --journal FILE --allow RULE … [--connections N] [--profile FILE]

The process is forked before any policy code is loaded, as the front does it, so that its size is the real one; the
parent then makes the policy and hands over the snapshot and the listening socket. With `--profile` the gate runs in
this process under cProfile, and its table is written to FILE when standard input ends or SIGTERM comes.
"""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src"))

import signal
from _socket import AF_INET, AF_UNIX, SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET
from socket import socket, socketpair


def _arguments() -> tuple[dict[str, str], list[str]]:
    words = sys.argv[1:]
    options: dict[str, str] = {}
    allowed: list[str] = []
    while words:
        name, value, *words = words
        if name == "--allow":
            allowed.append(value)
        else:
            options[name] = value
    return options, allowed


def _listener(port: int) -> socket:
    listener = socket(AF_INET, SOCK_STREAM)
    listener.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(4096)
    return listener


def _order(options: dict[str, str], allowed: list[str]) -> dict[str, object]:
    from tidegate.model.limits import Limits
    from tidegate.model.rule import Layer, Origin
    from tidegate.model.verdict import Phase, Verdict
    from tidegate.policy.policy import make_policy
    from tidegate.policy.rows import rule_row
    from tidegate.policy.snapshot import to_plain

    rows = [
        rule_row(text, Verdict.ALLOW, Phase.RUNTIME, "command-line", "--allow", Origin.WRITTEN, Layer.COMMAND_LINE)
        for text in allowed
    ]
    limits = Limits(connections=int(options.get("--connections", "4096")))
    return {
        "task": "bench",
        "phase": Phase.RUNTIME.value,
        "policy": to_plain(make_policy(rows, limits=limits)),
        "log": options["--journal"],
        "environment": {},
        "protected_ports": (),
    }


def _drive(near: socket, options: dict[str, str], allowed: list[str]) -> None:
    from tidegate.runtime.channel import receive, send

    send(near, _order(options, allowed))
    answer = receive(near)[0]
    if answer[0] != "ready":
        sys.exit(f"the gate does not start: {answer}")
    send(near, ("listener",), _listener(int(options["--port"])).detach())
    answer = receive(near)[0]
    if answer[0] != "serving":
        sys.exit(f"the gate does not serve: {answer}")


def main() -> None:
    """Fork the gate, hand it its work, and stay until it or we are told to end."""
    options, allowed = _arguments()
    from tidegate.runtime.gate_process import gate_main

    near, far = socketpair(AF_UNIX, SOCK_STREAM)
    child = os.fork()
    serves = (child == 0) != ("--profile" in options)
    if serves:
        near.close()
        if "--profile" in options:
            _profiled(far, options["--profile"])
        else:
            gate_main(far)
    far.close()
    _drive(near, options, allowed)
    if child == 0:  # profiling: the gate is our parent, and its end of the channel lives as long as we do
        signal.pause()
    os.waitpid(child, 0)


def _profiled(channel: socket, path: str) -> None:
    import cProfile

    from tidegate.runtime import gate_process

    profile = cProfile.Profile()
    ended = os._exit

    def write_and_end(status: int) -> None:
        profile.disable()
        profile.dump_stats(path)
        ended(status)

    os._exit = write_and_end  # type: ignore[assignment]
    os.setsid = lambda: None

    # What ends the gate outside the bench is its front; here it is whoever runs us.
    def take_sigterm() -> None:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))

    gate_process._ignore_terminal_signals = take_sigterm  # noqa: SLF001
    profile.enable()
    gate_process.gate_main(channel)


if __name__ == "__main__":
    main()
