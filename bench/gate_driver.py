"""Runs tidegate's own gate process on a listener of the bench, with everything on, as `tidegate run` does.

    python -I -S bench/gate_driver.py --port N --journal FILE --allow RULE … [--connections N] [--profile FILE]
                                      [--read RULE … --roots FILE --packages FOLDER]

The process is forked before any policy code is loaded, as the front does it, so that its size is the real one; the
parent then makes the policy and hands over the snapshot and the listening socket, and ends the gate when SIGTERM comes.
A rule of `--read` names methods, so that its host is read inside TLS; its destination is verified against the PEM of
`--roots`, and the packages for it are those of a folder. With `--profile` the gate runs under cProfile and its table is
written to FILE when it ends.
"""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src"))

import signal
from _socket import AF_INET, SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET, socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


_READ = ("GET", "PUT")  # methods that the generator uses


def _arguments() -> tuple[dict[str, str], dict[str, bool]]:
    """Return the options, and the rules with whether they are read inside TLS."""
    words = sys.argv[1:]
    options: dict[str, str] = {}
    rules: dict[str, bool] = {}
    while words:
        name, value, *words = words
        if name in {"--allow", "--read"}:
            rules[value] = name == "--read"
        else:
            options[name] = value
    return options, rules


def _listener(port: int) -> socket:
    listener = socket(AF_INET, SOCK_STREAM)
    listener.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(4096)
    return listener


def _order(options: dict[str, str], rules: dict[str, bool]) -> dict[str, object]:
    from tidegate.model.limits import Limits
    from tidegate.model.rule import NO_LIMITS, Layer, Origin, RuleLimits, only
    from tidegate.model.verdict import Phase, Verdict
    from tidegate.policy.policy import make_policy
    from tidegate.policy.rows import rule_row
    from tidegate.policy.snapshot import to_plain

    rows = [
        rule_row(
            *(text, Verdict.ALLOW, Phase.RUNTIME, "command-line", "--allow", Origin.WRITTEN, Layer.COMMAND_LINE),
            limits=RuleLimits(requests=only(_READ)) if read else NO_LIMITS,
        )
        for text, read in rules.items()
    ]
    roots = ""
    if "--roots" in options:
        with open(options["--roots"], encoding="ascii") as file:
            roots = file.read()
    limits = Limits(connections=int(options.get("--connections", "4096")))
    return {
        "task": "bench",
        "phase": Phase.RUNTIME.value,
        "policy": to_plain(make_policy(rows, limits=limits)),
        "log": options["--journal"],
        "rotate": True,
        "environment": {},
        "protected_ports": (),
        "own_names": (),
        "met": {"runtime": ()},
        "publish": (),
        "roots": roots,
    }


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def main() -> None:
    """Fork the gate, hand it its work, and stay until it or we are told to end."""
    options, rules = _arguments()
    if "--packages" in options:
        sys.path.append(options["--packages"])
    from tidegate.holds.inside import TaskSockets
    from tidegate.runtime.gate_link import GateLink

    if "--profile" in options:
        _profile_the_child(options["--profile"])
    link = GateLink(_say)
    link.configure(_order(options, rules))
    link.deliver(TaskSockets(("proxy",), (_listener(int(options["--port"])).detach(),)))
    link.confirm()
    link.begin(0.0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    try:
        os.waitpid(link.pid, 0)
    except SystemExit:
        link.close()


def _profile_the_child(path: str) -> None:
    """Let the gate run under cProfile in the process that GateLink forks; its table is written when it ends."""
    import cProfile

    from tidegate.runtime import gate_process

    serve = gate_process.gate_main

    def profiled(channel: socket, open_table: int) -> NoReturn:
        profile = cProfile.Profile()
        end = os._exit

        def write_and_end(status: int) -> NoReturn:
            profile.disable()
            profile.dump_stats(path)
            end(status)

        os._exit = write_and_end
        profile.enable()
        serve(channel, open_table)

    gate_process.gate_main = profiled


if __name__ == "__main__":
    main()
