"""The load generator and the origin as Python values: what to run, and what came out."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import Any, ClassVar

from bench import processes
from bench.build import LOADGEN, ORIGIN, TLSLOAD
from bench.processes import BenchError

NAME = "origin.bench.test"  # resolved by the hosts file of the bench's own mount namespace (RFC 6761: .test)
ELSEWHERE = "10.200.0.1"  # of the bench's own loopback: inside a hold 127.0.0.1 is the task's, and is not captured
DENIED = "203.0.113.9:443"  # a documentation address (RFC 5737) that no policy of the bench names


@dataclass(frozen=True)
class Load:
    """One run of the load generator; `ports` names the origin's port that it needs."""

    mode: str
    port: str = "echo"
    clients: int = 1
    seconds: float = 2.0
    warmup: float = 0.3
    by_name: bool = False
    hello: bool = False
    payload: int = 64

    def arguments(self, origin: Origin) -> list[str]:
        """Return the command line without the proxy."""
        host = NAME if self.by_name else origin.address
        target = DENIED if self.mode == "refuse" else f"{host}:{origin.ports[self.port]}"
        found = [LOADGEN, self.mode, "--target", target, "--clients", str(self.clients)]
        found += ["--seconds", str(self.seconds), "--warmup", str(self.warmup)]
        if self.mode == "up":
            found += ["--control", f"{host}:{origin.ports['control']}"]
        if self.mode == "tunnels" and not self.hello:
            found += ["--payload", str(self.payload)]
        if self.hello:
            found += ["--hello", NAME]
        return found

    def command(self, origin: Origin, proxy: str | None) -> list[str]:
        """Return the command line through a proxy (`address:port`), or directly where that is None."""
        return [*self.arguments(origin), *(["--proxy", proxy] if proxy else ["--direct"])]

    @property
    def compares_directly(self) -> bool:
        """Whether there is such a load without a proxy."""
        return self.mode != "refuse" and not self.by_name


@dataclass(frozen=True)
class TlsLoad:
    """One run of the generator that speaks TLS, to an origin of https_origin.py; always by name."""

    mode: str
    clients: int = 1
    streams: int = 1
    seconds: float = 2.0
    warmup: float = 0.3
    path: str = "/"
    begun: bool = False  # of the mode `idle`: a connection is open once its answer has begun
    protocol: str = "h1"
    compares_directly: ClassVar[bool] = True

    def command(self, origin: Origin, proxy: str | None) -> list[str]:
        """Return the command line, as Load does."""
        port = origin.ports["https"]
        found = [TLSLOAD, self.mode, "--target", f"{NAME}:{port}", "--path", self.path]
        found += ["--clients", str(self.clients), "--streams", str(self.streams)]
        found += ["--seconds", str(self.seconds), "--warmup", str(self.warmup)]
        found += ["--h2"] if self.protocol == "h2" else []
        found += ["--begun"] if self.begun else []
        return [*found, *(["--proxy", proxy] if proxy else ["--direct", f"{origin.address}:{port}"])]


class Origin:
    """A running origin server with its five ports.

    Each peer gets its own, so that none inherits another's connections in TIME_WAIT.
    """

    def __init__(self, address: str = "127.0.0.1") -> None:
        self.address = address
        self._process = processes.start([ORIGIN, "--bind", address], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self._process.stdout is None:
            raise BenchError("the origin has no output")
        line = self._process.stdout.readline()
        if not line:
            raise BenchError("the origin did not start")
        self.ports: dict[str, int] = json.loads(line)

    def rules(self) -> list[str]:
        """Return the exact rules a policy needs to reach this origin, by address and by name."""
        return [f"{host}:{port}" for port in self.ports.values() for host in (self.address, NAME)]

    def stop(self) -> None:
        """End it."""
        processes.stop(self._process)


def run_load(load: Load | TlsLoad, origin: Origin, proxy: str | None) -> dict[str, Any]:
    """Run the load through `proxy` (`address:port`), or directly where it is None.

    Raises:
        BenchError: when the generator fails or takes far too long.
    """
    return finish_load(load.command(origin, proxy), load)


def finish_load(
    command: list[str], load: Load | TlsLoad, *, env: dict[str, str] | None = None, cwd: str | None = None
) -> dict[str, Any]:
    """Run a command that prints the generator's line of JSON, with time for itself around the load.

    Raises:
        BenchError: when no such line comes.
    """
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=load.seconds + load.warmup + 45,
            check=False,
            env=env,
            cwd=cwd,
        )
    except subprocess.TimeoutExpired as error:
        raise BenchError(f"{command[0]} took longer than {error.timeout:g} s") from None
    for line in reversed(done.stdout.decode(errors="replace").splitlines()):
        if line.startswith('{"mode"'):
            result: dict[str, Any] = json.loads(line)
            return result
    said = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
    raise BenchError(f"{command[0]} ended with {done.returncode}: {said[-1][:200] if said else 'it said nothing'}")


class Idle:
    """Holds open what a load of the mode `idle` opens through a proxy, until it is stopped."""

    def __init__(self, load: Load | TlsLoad, origin: Origin, proxy: str) -> None:
        self._process = processes.start(load.command(origin, proxy), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        line = self._process.stdout.readline() if self._process.stdout else b""
        if not line:
            processes.stop(self._process)
            raise BenchError("the generator of idle connections ended early")
        said = json.loads(line)
        self.open: int = said["open"]
        self.first_error: str = said["first_error"]

    def stop(self) -> None:
        """Close them all."""
        processes.stop(self._process)
