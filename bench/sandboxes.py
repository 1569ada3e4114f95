"""How a command is run inside tidegate's hold, bubblewrap and sandbox-runtime, with the destinations it needs.

tidegate runs as a user would run it, from the repository's launcher: default hold, self-test, journal, the rest of
its state in a folder of the bench. Its policy file names the exact destinations and raises the limit of connections.
sandbox-runtime gets the same hosts in `allowedDomains` (it has no upper limit to raise). bubblewrap has no proxy; it is
there for the start only.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

from bench.build import BUILD, ROOT, SRT, find
from bench.engines import IMAGE
from bench.loads import ELSEWHERE
from bench.peers import Tidegate, said_by

if TYPE_CHECKING:
    from bench.loads import Origin

TIDEGATE = "tidegate"
BY_CAPTURE = "tidegate, by capture"
WITHOUT_CAPTURE = "tidegate, no capture"
IN_UID = "tidegate, uid"
IN_LANDLOCK = "tidegate, landlock"
IN_DOCKER = "tidegate, docker"
IN_PODMAN = "tidegate, podman"
BARE_DOCKER = "docker run"
BARE_PODMAN = "podman run"
WITHOUT_SELFTEST = "tidegate, no self-test"
SANDBOX_RUNTIME = "sandbox-runtime"
BUBBLEWRAP = "bubblewrap"


class Sandbox:
    """Makes the command line, environment and working folder for a command inside."""

    name: str
    settings = ""
    address = "127.0.0.1"  # where its origin is
    sources = 2  # loopback addresses that the load generator connects from
    engine = ""  # the container engine that it needs
    way: tuple[str, ...] = ()  # how the load generator connects; by the proxy of the environment where this is empty

    def __init__(self, folder: str, origin: Origin | None) -> None:
        self.folder = os.path.join(folder, "inside-" + self.name.replace(" ", "-").replace(",", ""))
        os.makedirs(self.folder, exist_ok=True)
        self.origin = origin
        self.variables: dict[str, str] = {}  # more of the environment

    def command(self, inside: list[str]) -> list[str]:
        """Return the command that runs `inside` in the sandbox."""
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        """Return the environment: ours, with state and settings in the bench's folder."""
        names = {"XDG_STATE_HOME": "state", "XDG_CONFIG_HOME": "config", "XDG_CACHE_HOME": "cache"}
        return os.environ | {name: os.path.join(self.folder, value) for name, value in names.items()} | self.variables

    @property
    def cwd(self) -> str:
        """The folder it runs in: one that holds the load generator."""
        return BUILD

    def works(self) -> str | None:
        """Run `true` inside once; return what went wrong, or None."""
        try:
            done = subprocess.run(
                self.command(["true"]),
                env=self.environment(),
                cwd=self.cwd,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=60,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        if done.returncode == 0:
            return None
        said = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        return said[-1][:300] if said else f"status {done.returncode}"

    @classmethod
    def version(cls) -> str:
        """Return its version."""
        raise NotImplementedError


class InTidegate(Sandbox):
    """`./tidegate run`, as it comes."""

    name = TIDEGATE
    settings = "./tidegate run, default hold, self-test and journal on, policy file with exact rules"
    options: tuple[str, ...] = ()

    def command(self, inside: list[str]) -> list[str]:
        """Return the command that runs `inside` in it."""
        found = [os.path.join(ROOT, "tidegate"), "run", *self.options]
        if self.origin:
            lines = ["network:", "  runtime:", "    allow:"]
            lines += [f'      - "{rule}"' for rule in self.origin.rules()]
            lines += ["limits:", "  connections: 4096", ""]
            path = os.path.join(self.folder, "policy.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write("\n".join(lines))
            found += ["--quiet", "--policy", path]
        return [*found, "--", *inside]

    @classmethod
    def version(cls) -> str:
        """Ask it."""
        return Tidegate.version()


class InTidegateByCapture(InTidegate):
    """The same for a program that knows no proxy: it connects, and arrives at the gate."""

    name = BY_CAPTURE
    settings = "the same, the generator without a proxy"
    address = ELSEWHERE
    way = ("--direct",)


class InTidegateWithoutCapture(InTidegate):
    """The same where only programs that know proxies get out, to see what capture costs."""

    name = WITHOUT_CAPTURE
    settings = "the same with --capture off"
    options = ("--capture", "off")


class InTidegateWithoutSelftest(InTidegate):
    """The same without the proof of the fence, to see what the proof costs."""

    name = WITHOUT_SELFTEST
    settings = "the same with --no-selftest"
    options = ("--no-selftest",)


class InUid(InTidegate):
    """The same as a user of its own in the machine's network."""

    name = IN_UID
    settings = "the same with --hold uid, as root"
    options = ("--hold", "uid")


class InLandlock(InTidegate):
    """The same by Landlock, a filter and a watcher, in the machine's network."""

    name = IN_LANDLOCK
    settings = "the same with --hold landlock"
    options = ("--hold", "landlock")
    sources = 1  # none can be chosen there


class InDocker(InTidegate):
    """The same in a container of docker's."""

    name = IN_DOCKER
    engine = "docker"
    settings = "the same with --hold docker, an image of busybox alone, a daemon of the bench's own with runc"
    options = ("--hold", "docker", "--image", IMAGE)


class InPodman(InTidegate):
    """The same in a container of podman's."""

    name = IN_PODMAN
    engine = "podman"
    settings = "the same with --hold podman, the same image, a store of the bench's own with runc"
    options = ("--hold", "podman", "--image", IMAGE)


class BareDocker(Sandbox):
    """What docker does alone, without a gate: no network."""

    name = BARE_DOCKER
    engine = "docker"
    settings = "docker run --rm --network none, the same image and daemon"

    def command(self, inside: list[str]) -> list[str]:
        """Return the command that runs `inside` in it."""
        return [self.engine, "run", "--rm", "--network", "none", IMAGE, *inside]

    @classmethod
    def version(cls) -> str:
        """Ask it."""
        return said_by([cls.engine, "--version"], r"(\d[\w.+~-]*)")


class BarePodman(BareDocker):
    """What podman does alone."""

    name = BARE_PODMAN
    engine = "podman"
    settings = "podman run --rm --network none, the same image and store"


class InSandboxRuntime(Sandbox):
    """`srt`, allowed to reach the origin and to write its folder."""

    name = SANDBOX_RUNTIME
    settings = "srt with the origin in allowedDomains, its own folder writable, nothing denied beyond its defaults"

    def command(self, inside: list[str]) -> list[str]:
        """Return the command that runs `inside` in it."""
        hosts = sorted({rule.rpartition(":")[0] for rule in self.origin.rules()}) if self.origin else []
        config = {
            "network": {"allowedDomains": hosts, "deniedDomains": []},
            "filesystem": {"denyRead": [], "allowWrite": ["."], "denyWrite": []},
        }
        path = os.path.join(self.folder, "settings.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)
        return [SRT, "-s", path, *inside]

    @classmethod
    def version(cls) -> str:
        """Ask it."""
        return said_by([SRT, "--version"], r"(\d\S+)")


class InBubblewrap(Sandbox):
    """`bwrap` with every namespace unshared and the root folder read-only: the least a sandbox has to do."""

    name = BUBBLEWRAP
    settings = "bwrap --unshare-all with the root folder read-only, no network, no proxy"

    def command(self, inside: list[str]) -> list[str]:
        """Return the command that runs `inside` in it."""
        bind = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
        return [find("bwrap") or "bwrap", *bind, "--unshare-all", "--die-with-parent", *inside]

    @classmethod
    def version(cls) -> str:
        """Ask it."""
        return said_by([find("bwrap") or "bwrap", "--version"], r"(\d\S+)")
